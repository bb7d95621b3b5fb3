"""Recipes and data so small that a model is trained in a second: English numbers, a tab, Chinese numbers."""

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
from typer.testing import Result

Call = Callable[..., Result]
ENGLISH = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
NUMBERS = dict(zip("一二三四五六七八九十", ENGLISH, strict=True))
SIZES = "\n".join(["d_model = 8", "n_heads = 2", "d_ff = 12", "n_encoder_layers = 1", "n_decoder_layers = 1"])
RECIPE = """
run = "{folder}/run"
[task]
kind = "translate"
max_length = 16
tokenizer = {{ kind = "word", vocab_size = 60, min_frequency = 1 }}
decode = {{ beam = 2 }}
[data]
train = "{folder}/train.tsv"
valid = "{folder}/valid.tsv"
test = "{folder}/test.tsv"
columns = {{ source = 2, target = 1 }}
[model]
kind = "transformer"
{sizes}
[train]
max_steps = 4
eval_every = 2
batch_tokens = 50
threads = 1
"""
CLASSIFY = """
run = "{folder}/run"
[task]
kind = "classify"
tokenizer = {{ kind = "word", vocab_size = 60, min_frequency = 1 }}
[data]
train = "{folder}/texts.csv"
[model]
kind = "classifier"
[model.encoder]
kind = "words"
d_embed = 8
[train]
max_steps = 2
threads = 1
"""


def write_pairs(path: Path, n_rows: int) -> None:
    """English numbers, a tab, Chinese numbers."""
    rng = random.Random(path.name)
    rows = [rng.choices(list(NUMBERS), k=rng.randint(1, 5)) for _ in range(n_rows)]
    lines = [f"{' '.join(NUMBERS[sign] for sign in row)}\t{''.join(row)}\n" for row in rows]
    path.write_text("".join(lines), "utf-8")


def write_ratings(path: Path, n_users: int, n_items: int = 11) -> None:
    """Interactions in no order, of users who go round and round the items, a step or two at a time."""
    rng = random.Random(n_users)
    rows = []
    for user in range(n_users):
        item = rng.randrange(n_items)
        for time in range(rng.randint(3, 12)):
            rows.append(f"u{user:02},item {item},{5 - item % 3},{1_700_000_000 + 3600 * time}")
            item = (item + rng.choice([1, 1, 1, 2])) % n_items
    rng.shuffle(rows)
    path.write_text("\n".join(["user_id,item_id,rating,timestamp", *rows]) + "\n", "utf-8")


def write_pictures(path: Path, n: int) -> None:
    """Noise with a bright half, which is the label."""
    rng, labels = np.random.default_rng(1), np.arange(n) % 2
    pixels = rng.integers(0, 100, (n, 8, 8, 3), np.uint8)
    for one, label in zip(pixels, labels, strict=True):
        one[:, 4 * label : 4 * label + 4] += 120
    np.savez(path, image=pixels, label=labels)


def write_recipe(folder: Path, text: str = RECIPE) -> Path:
    """A recipe and its data in `folder`."""
    for split, n_rows in (("train", 40), ("valid", 7), ("test", 5)):
        write_pairs(folder / f"{split}.tsv", n_rows)
    rows = (f"{'good' if n % 3 else 'bad'} film {n % 5},{'yes' if n % 3 else 'no'}" for n in range(30))
    (folder / "texts.csv").write_text("text,label\n" + "\n".join(rows) + "\n", "utf-8")
    write_ratings(folder / "ratings.csv", 30)
    path = folder / "recipe.toml"
    path.write_text(text.format(folder=folder, sizes=SIZES), "utf-8")
    return path

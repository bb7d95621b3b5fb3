"""Labelled sets of many kinds, made from the shared data folder: `python bench/labelled_sets.py DATA OUT`.

Each becomes train.jsonl, valid.jsonl and test.jsonl under OUT/NAME, at most 10,000 training rows and 2,000 of
each other split, drawn with a fixed seed. Where a set has no labels of its own they are derived from what
stands beside the texts: who wrote a poem, which article a question is about, what a package is for.
"""

import gzip
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

Rows = list[dict[str, Any]]
Splits = dict[str, Rows]
MOST_TRAIN, MOST_OTHER = 10_000, 2_000
MOST_CHARACTERS = 1_000
"""Of a text."""


def read(path: Path) -> Iterator[str]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield line.rstrip("\n")


def table(folder: Path, text: int, label: int, names: Sequence[str] = ("train", "dev", "test")) -> Splits:
    """A .tsv.gz for each split, with the columns of text and label."""
    found: Splits = {}
    for split, name in zip(("train", "valid", "test"), names, strict=True):
        path = folder / f"{name}.tsv.gz"
        if path.is_file():
            cells = (line.split("\t") for line in read(path))
            found[split] = [{"text": row[text], "label": row[label]} for row in cells]
    return found


def mixed(rows: Rows) -> Splits:
    """Splits drawn from rows that have none: a tenth each for validation and test; no text recurs."""
    unique = list({json.dumps([row.get("text"), row.get("second")]): row for row in rows}.values())
    random.Random(1).shuffle(unique)
    n = min(MOST_OTHER, len(unique) // 10)
    return {"test": unique[:n], "valid": unique[n : 2 * n], "train": unique[2 * n :]}


def commonest(rows: Rows, most: int) -> Rows:
    kept = {label for label, _ in Counter(row["label"] for row in rows).most_common(most)}
    return [row for row in rows if row["label"] in kept]


def semeval(data: Path) -> Splits:
    folder = data / "semeval2010_task8"
    keys = dict(line.split("\t") for line in read(folder / "answer_keys.txt.gz"))
    test = [line.split("\t") for line in read(folder / "test.tsv.gz")]
    train = [
        {"text": text, "label": label}
        for label, text, *_ in (line.split("\t") for line in read(folder / "train.tsv.gz"))
    ]
    first, second = test[0][:2]
    labelled = first in keys or second in keys
    rows = (
        [{"text": row[1], "label": keys[row[0]]} for row in test]
        if labelled
        else [{"text": row[1], "label": row[0]} for row in test]
    )
    return {"train": train, "test": rows}


def services(data: Path) -> Splits:
    """What a dialogue is about, by what its user says first."""

    def rows(split: str) -> Rows:
        dialogues = map(json.loads, read(data / "sgd_dialogue" / f"{split}.jsonl.gz"))
        return [
            {
                "text": one["turns"][0][1],
                "label": "+".join(sorted({s.split("_")[0] for s in one["services"]})),
            }
            for one in dialogues
        ]

    return mixed(commonest([*rows("train"), *rows("dev"), *rows("test")], 40))


def speakers(data: Path) -> Splits:
    """Whether the user or the system says a turn."""
    names = {"train": "train", "valid": "dev", "test": "test"}
    return {
        split: [
            {"text": text, "label": who}
            for one in map(json.loads, read(data / "sgd_dialogue" / f"{name}.jsonl.gz"))
            for who, text in one["turns"]
        ]
        for split, name in names.items()
    }


def topics(data: Path) -> Splits:
    """Which article a question is about."""
    path = data / "squad_style_qa" / "squadshifts_newwiki.json.gz"
    articles = json.loads("".join(read(path)))["data"]
    return mixed(
        [
            {"text": question["question"], "label": article["title"]}
            for article in articles
            for part in article["paragraphs"]
            for question in part["qas"]
        ]
    )


def answerable(data: Path) -> Splits:
    """Whether a paragraph answers a question."""
    path = data / "squad_style_qa" / "squad2_dev_half_full.json.gz"
    articles = json.loads("".join(read(path)))["data"]
    rows = [
        {
            "text": question["question"],
            "second": part["context"],
            "label": "no" if question.get("is_impossible") else "yes",
        }
        for article in articles
        for part in article["paragraphs"]
        for question in part["qas"]
    ]
    return mixed(rows)


def replies(data: Path) -> Splits:
    """Whether a reply belongs to what was said, or to something else."""

    def rows(split: str) -> Rows:
        rng = random.Random(2)
        dialogues = [json.loads(line) for line in read(data / "dailydialog_pp" / f"{split}.jsonl.gz")]
        found = []
        for one in dialogues:
            yes, other = rng.choice(one["responses"]), rng.choice(rng.choice(dialogues)["responses"])
            found.append({"text": one["context"][-1], "second": yes, "label": "fits"})
            found.append({"text": one["context"][-1], "second": other, "label": "does not"})
        return found

    return {"train": rows("train"), "valid": rows("dev"), "test": rows("test")}


def poets(data: Path) -> Splits:
    """Which of thirty poets of the Tang wrote a poem."""
    rows = [
        {"text": text, "label": poet}
        for split in ("train", "val", "test")
        for poet, _, text in (line.split("\t")[:3] for line in read(data / "tang_poetry" / f"{split}.tsv.gz"))
        if poet != "不詳"
    ]
    return mixed(commonest(rows, 30))


def genres(data: Path) -> Splits:
    """What kind of writing a sentence is from."""
    found: Splits = {}
    for split, name in (("train", "train"), ("valid", "dev"), ("test", "test")):
        rows, label = [], ""
        for line in read(data / "ud_english_ewt" / f"en_ewt-ud-{name}.conllu.gz"):
            if line.startswith("# sent_id = "):
                label = line.removeprefix("# sent_id = ").split("-")[0]
            elif line.startswith("# text = "):
                rows.append({"text": line.removeprefix("# text = "), "label": label})
        found[split] = rows
    return found


PACKAGES: Mapping[str, str] = {
    "Perl": r"lib.*-perl",
    "Python": r"python3-.*",
    "Ruby": r"ruby-.*",
    "Go": r"golang-.*-dev|golang-.*",
    "Rust": r"librust-.*",
    "Node": r"node-.*",
    "R": r"r-cran-.*|r-bioc-.*|r-other-.*",
    "PHP": r"php-.*",
    "Haskell": r"libghc-.*",
    "Java": r"lib.*-java",
    "OCaml": r"lib.*-ocaml.*",
    "font": r"fonts-.*|t1-.*|xfonts-.*|ttf-.*",
    "documentation": r".*-doc",
    "development": r"lib.*-dev",
    "library": r"lib.*",
    "game": r".*game.*",
    "dictionary": r"aspell-.*|hunspell-.*|myspell-.*|i.*dict.*|w.*dict.*|mythes-.*|hyphen-.*",
}


def packages(data: Path) -> Splits:
    """What sort of package a description is of, by how such packages are named."""

    def rows(split: str) -> Rows:
        found = []
        for one in map(json.loads, read(data / "debian_desc_summarization" / f"{split}.jsonl.gz")):
            label = next(
                (sort for sort, name in PACKAGES.items() if re.fullmatch(name, one["package"])), None
            )
            if label is not None:
                found.append({"text": one["document"], "label": label})
        return found

    return {"train": rows("train"), "valid": rows("val"), "test": rows("test")}


def languages(data: Path) -> Splits:
    """The language of two words."""
    rows = []
    for language in ("en", "de", "fr", "cs"):
        path = data / "multi30k" / "lc_tok" / f"train.{language}.gz"
        if path.is_file():
            rng = random.Random(language)
            for line in read(path):
                words = line.split()
                start = rng.randrange(max(1, len(words) - 2))
                rows.append({"text": " ".join(words[start : start + 2]), "label": language})
    rows += [
        {"text": side[:4], "label": "zh"}
        for side in (line.split("\t")[1] for line in read(data / "tatoeba_cmn_eng" / "train.tsv.gz"))
    ]
    rng = random.Random(3)
    rng.shuffle(rows)
    return mixed(rows[:16_000])


def films(data: Path) -> Splits:
    """The kinds of a film, by its title."""
    rows = []
    for line in read(data / "movietweetings_100k" / "movies.dat.gz"):
        _, title, kinds = ([*line.split("::"), "", ""])[:3]
        if kinds:
            rows.append({"text": re.sub(r" \(\d{4}\)$", "", title), "label": kinds.split("|")})
    return mixed(rows)


def resumes(data: Path) -> Splits:
    """Which kinds of entities a Chinese sentence of somebody's life has."""
    found: Splits = {}
    for split, name in (("train", "train"), ("valid", "dev"), ("test", "test")):
        rows: Rows = []
        characters: list[str] = []
        kinds: set[str] = set()
        for line in [*read(data / "resume_ner" / f"{name}.char.bmes.gz"), ""]:
            if line.strip():
                character, tag = line.split()
                characters.append(character)
                kinds |= {tag[2:]} - {""}
            elif characters:
                rows.append({"text": "".join(characters), "label": sorted(kinds)})
                characters, kinds = [], set()
        found[split] = rows
    return found


LISTOPS = ("train", "val", "test")
SETS: Mapping[str, Callable[[Path], Splits]] = {
    "mr": lambda data: table(data / "mr_sentence_polarity", 1, 0),
    "sst2": lambda data: table(data / "sst2", 0, 1),
    "hotel": lambda data: table(data / "chnsenticorp_hotel", 1, 0),
    "semeval": semeval,
    "services": services,
    "speakers": speakers,
    "topics": topics,
    "poets": poets,
    "genres": genres,
    "packages": packages,
    "languages": languages,
    "listops": lambda data: table(data / "listops_256", 1, 0, LISTOPS),
    "replies": replies,
    "answerable": answerable,
    "films": films,
    "resumes": resumes,
}


def cut(splits: Splits) -> Splits:
    """At most so many rows; validation data are taken from training where there are none."""
    found = {}
    for split, rows in splits.items():
        kept = [row for row in rows if row["text"].strip() and (row["label"] or row["label"] == [])]
        random.Random(4).shuffle(kept)
        found[split] = kept
    if "valid" not in found:
        n = min(MOST_OTHER, len(found["train"]) // 10)
        found["valid"], found["train"] = found["train"][:n], found["train"][n:]
    most = {"train": MOST_TRAIN, "valid": MOST_OTHER, "test": MOST_OTHER}
    return {
        split: [
            row | {name: row[name][:MOST_CHARACTERS] for name in ("text", "second") if name in row}
            for row in rows[: most[split]]
        ]
        for split, rows in found.items()
    }


def make(name: str, data: Path, out: Path) -> Path:
    """The folder of a set, made unless it is there."""
    folder = out / name
    if not folder.is_dir():
        splits = cut(SETS[name](data))
        folder.mkdir(parents=True)
        for split, rows in splits.items():
            text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            (folder / f"{split}.jsonl").write_text(text, encoding="utf-8")
    return folder


if __name__ == "__main__":
    for name in SETS:
        folder = make(name, Path(sys.argv[1]), Path(sys.argv[2]))
        rows = {
            split: (folder / f"{split}.jsonl").read_text().splitlines()
            for split in ("train", "valid", "test")
        }
        labels = {str(json.loads(row)["label"]) for row in rows["train"]}
        print(
            f"{name:11}",
            {split: len(lines) for split, lines in rows.items()},
            len(labels),
            rows["train"][0][:150],
        )

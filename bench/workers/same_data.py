"""Small corpora for every task, made by chance that is always the same; nothing here needs regard.

Each corpus lies in a folder of its own, with train, valid and test files; `asked` holds what models of each
task are asked after their training. Words carry enough meaning for thirty steps to change a model.
"""

import gzip
import json
import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

WORDS = (
    *("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet", "jetty", "knoll"),
    *("larch", "marsh", "north", "oasis", "pearl", "quarry", "river", "stone", "tundra", "upland", "valley"),
    *("willow", "yarrow", "zephyr"),
)
TREES = ("birch", "cedar", "larch", "willow")
PLACES = ("fjord", "inlet", "marsh", "river", "tundra", "valley")
SIZES = {"train": 240, "valid": 14, "test": 12}
N_ASKED = 12
Rows = Iterator[dict[str, Any]]


def words(rng: random.Random, least: int, most: int) -> list[str]:
    """Of a sentence; the early words of the list are the frequent ones."""
    weights = [1 / (rank + 3) for rank in range(len(WORDS))]
    return rng.choices(WORDS, weights, k=rng.randint(least, most))


def pairs(rng: random.Random, n: int) -> Rows:
    """Sentences, and the same backwards with every tree doubled."""
    for _ in range(n):
        source = words(rng, 1, 8)
        target = [word for word in reversed(source) for _ in range(1 + (word in TREES))]
        yield {"source": " ".join(source), "target": " ".join(target)}


def many_words(rng: random.Random, n: int) -> Rows:
    """Words of three letters, and the same backwards: a vocabulary larger than all else here."""
    for _ in range(n):
        source = ["".join(rng.choices("bdfgklmnprstvz", k=3)) for _ in range(rng.randint(10, 18))]
        yield {"source": " ".join(source), "target": " ".join(reversed(source))}


def characters(rng: random.Random, n: int) -> Rows:
    """Chinese numbers, and what they are called in English."""
    english = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    names = dict(zip("一二三四五六七八九十", english, strict=True))
    for _ in range(n):
        signs = rng.choices(list(names), k=rng.randint(1, 7))
        yield {"source": "".join(signs) + "。", "target": " ".join(names[sign] for sign in signs) + "."}


def documents(rng: random.Random, n: int) -> Rows:
    """Long texts; the summary is the trees and places in them, or how they begin."""
    for _ in range(n):
        text = words(rng, 8, 24)
        said = [word for word in text if word in TREES + PLACES][:5] or text[:2]
        yield {"document": " ".join(text) + ".", "summary": " ".join(said) + "."}


def conversations(rng: random.Random, n: int) -> Rows:
    """Turns that go on where the one before ended."""
    for _ in range(n // 3):
        at, turns = rng.randrange(len(WORDS)), []
        for _ in range(rng.randint(2, 5)):
            length = rng.randint(1, 4)
            turns.append(" ".join(WORDS[(at + i) % len(WORDS)] for i in range(length)))
            at += length
        yield {"turns": turns}


def labelled(rng: random.Random, n: int) -> Rows:
    """Three labels, of which one is rare: a tree, a place, neither."""
    for _ in range(n):
        text = words(rng, 2, 11)
        label = "tree" if set(text) & set(TREES) else "place" if set(text) & set(PLACES) else "none"
        yield {"text": " ".join(text), "label": label}


def labelled_pairs(rng: random.Random, n: int) -> Rows:
    """Whether two sentences begin alike."""
    for _ in range(n):
        first, second = words(rng, 2, 6), words(rng, 2, 6)
        if rng.random() < 0.5:
            second[0] = first[0]
        yield {
            "text": " ".join(first),
            "second": " ".join(second),
            "label": "same" if first[0] == second[0] else "other",
        }


def multilabelled(rng: random.Random, n: int) -> Rows:
    """Every kind of word that occurs."""
    for _ in range(n):
        text = words(rng, 2, 11)
        kinds = {"tree": TREES, "place": PLACES, "jewel": ("amber", "pearl", "ember")}
        labels = [kind for kind, members in kinds.items() if set(text) & set(members)]
        yield {"text": " ".join(text), "label": ",".join(labels)}


def tagged(rng: random.Random, n: int) -> Rows:
    """Of words of one kind in a row, the first begins a span and the others go on with it."""
    for number in range(n):
        text = words(rng, 1, 40 if number % 8 == 0 else 9)
        tags, before = [], ""
        for word in text:
            kind = "TREE" if word in TREES else "PLACE" if word in PLACES else ""
            tags.append("O" if not kind else f"{'I' if kind == before else 'B'}-{kind}")
            before = kind
        yield {"words": text, "tags": tags}


def tagged_by_sign(rng: random.Random, n: int) -> Rows:
    """Characters, of which the even numbers are spans."""
    for row in characters(rng, n):
        signs = list(row["source"])
        yield {"words": signs, "tags": ["B-EVEN" if sign in "二四六八十" else "O" for sign in signs]}


def tagged_loosely(rng: random.Random, n: int) -> Rows:
    """By the scheme IOB1, in which a span begins with B only after another of its kind."""
    for row in tagged(rng, n):
        yield row | {"tags": [tag.replace("B-", "I-") for tag in row["tags"]]}


def related(rng: random.Random, n: int) -> Rows:
    """Two marked entities: the first in the alphabet rules the other, unless they are the same."""
    for _ in range(n):
        text = words(rng, 3, 9)
        first, second = sorted(rng.sample(range(len(text)), 2))
        one, other = rng.choices(TREES, k=2)
        label = "Other" if one == other else f"Rules({'e1,e2' if one < other else 'e2,e1'})"
        text[first], text[second] = f"<e1>{one}</e1>", f"<e2>{other}</e2>"
        yield {"label": label, "text": " ".join(text)}


def questions(rng: random.Random, n: int) -> Rows:
    """Paragraphs of SQuAD that say where trees stand; a tree that is not named has no answer."""
    for number in range(n // 3):
        trees, places = rng.sample(TREES, 4), rng.sample(PLACES, 3)
        told = [f"the {tree} stands near the {place}" for tree, place in zip(trees, places, strict=False)]
        between = " ".join(words(rng, 0, 30 if number % 4 == 0 else 4))
        context = f"{told[0]}, {told[1]}. {between} {told[2]}."
        asked = []
        for at, tree in enumerate(trees):
            named = [f"the {place}" for place in places[at : at + 1]]
            answers = [{"text": place, "answer_start": context.index(place)} for place in named]
            one = {"id": f"{number}-{at}", "question": f"where does the {tree} stand?", "answers": answers}
            asked.append(one | ({} if answers else {"is_impossible": True}))
        yield {"context": context, "qas": asked}


def stories(rng: random.Random, n: int) -> Rows:
    """Documents of a few sentences, in which each word tells the next."""
    for _ in range(n // 2):
        at, sentences = rng.randrange(len(WORDS)), []
        for _ in range(rng.randint(1, 6)):
            length = rng.randint(2, 7)
            sentence = " ".join(WORDS[(at + i) % len(WORDS)] for i in range(length))
            sentences.append(sentence.capitalize() + rng.choice((".", ".", "!")))
            at += length - rng.randint(0, 1)
        yield {"sentences": sentences}


def _lines(path: Path, lines: Iterator[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def _tsv(path: Path, rows: Rows) -> None:
    _lines(path.with_suffix(".tsv"), ("\t".join(row.values()) for row in rows))


def _csv(path: Path, rows: Rows) -> None:
    made = list(rows)
    quoted = (",".join(f'"{value}"' for value in row.values()) for row in made)
    _lines(path.with_suffix(".csv"), iter([",".join(made[0]), *quoted]))


def _jsonl(path: Path, rows: Rows) -> None:
    _lines(path.with_suffix(".jsonl"), map(json.dumps, rows))


def _conll(path: Path, rows: Rows) -> None:
    each = ((zip(row["words"], row["tags"], strict=True), "") for row in rows)
    _lines(path.with_suffix(".conll"), ("".join(f"{w} {t}\n" for w, t in row) + end for row, end in each))


def _squad(path: Path, rows: Rows) -> None:
    told = {"version": "v2.0", "data": [{"title": "trees", "paragraphs": list(rows)}]}
    path.with_suffix(".json").write_text(json.dumps(told), "utf-8")


def _text(path: Path, rows: Rows) -> None:
    path.with_suffix(".txt").write_text("\n\n".join("\n".join(row["sentences"]) for row in rows) + "\n")


def _aligned(path: Path, rows: Rows) -> None:
    """A compressed file for each side, with a line for each row."""
    made = list(rows)
    for role in made[0]:
        text = "".join(f"{row[role]}\n" for row in made)
        path.with_name(f"{path.name}.{role}.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def _gb18030(path: Path, rows: Rows) -> None:
    text = "".join(f"{row['source']}\t{row['target']}\n" for row in rows)
    path.with_suffix(".tsv").write_bytes(text.encode("gb18030"))


def _shards(path: Path, rows: Rows) -> None:
    """Three files, which a pattern names."""
    made = list(rows)
    for number in range(3):
        _tsv(path.with_name(f"{path.name}-{number}"), iter(made[number::3]))


def _parquet(path: Path, rows: Rows) -> None:
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.Table.from_pylist(list(rows)), path.with_suffix(".parquet"))


def _semeval(path: Path, rows: Rows) -> None:
    told = (f'{n}\t"{row["text"]}"\n{row["label"]}\nComment:\n' for n, row in enumerate(rows, 1))
    _lines(path.with_suffix(".semeval"), told)


def _conllu(path: Path, rows: Rows) -> None:
    """The tags as parts of speech."""
    with path.with_suffix(".conllu").open("w", encoding="utf-8") as file:
        for row in rows:
            for number, (word, tag) in enumerate(zip(row["words"], row["tags"], strict=True), 1):
                file.write(f"{number}\t{word}\t_\t{tag[-5:]}\t_\t_\t_\t_\t_\t_\n")
            file.write("\n")


def _lists(path: Path, rows: Rows) -> None:
    """Labels as lists."""
    listed = ({"text": row["text"], "label": [it for it in row["label"].split(",") if it]} for row in rows)
    _jsonl(path, listed)


def _words(path: Path, rows: Rows) -> None:
    """Words and tags as lists."""
    _jsonl(path, ({"text": row["words"], "tags": row["tags"]} for row in rows))


def _replies(path: Path, rows: Rows) -> None:
    """What was said before, and the reply to it."""
    turns = (row["turns"] for row in rows)
    told = ({"context": " __eou__ ".join(before), "reply": reply} for *before, reply in turns)
    _csv(path, told)


def _answers(path: Path, rows: Rows) -> None:
    """A question a line; the answer stands somewhere in the context."""
    told = (
        {"question": one["question"], "context": row["context"], "answer": one["answers"][0]["text"]}
        for row in rows
        for one in row["qas"]
        if one["answers"]
    )
    _csv(path, told)


def _documents(path: Path, rows: Rows) -> None:
    """A document a line."""
    _jsonl(path, ({"text": " ".join(row["sentences"])} for row in rows))


CORPORA: dict[str, tuple[Callable[[random.Random, int], Rows], Callable[[Path, Rows], None], str]] = {
    "pairs": (pairs, _tsv, "{}.tsv"),
    "many_words": (many_words, _tsv, "{}.tsv"),
    "characters": (characters, _tsv, "{}.tsv"),
    "documents": (documents, _jsonl, "{}.jsonl"),
    "conversations": (conversations, _jsonl, "{}.jsonl"),
    "labelled": (labelled, _csv, "{}.csv"),
    "labelled_pairs": (labelled_pairs, _csv, "{}.csv"),
    "multilabelled": (multilabelled, _csv, "{}.csv"),
    "tagged": (tagged, _conll, "{}.conll"),
    "tagged_by_sign": (tagged_by_sign, _conll, "{}.conll"),
    "tagged_loosely": (tagged_loosely, _conll, "{}.conll"),
    "related": (related, _tsv, "{}.tsv"),
    "questions": (questions, _squad, "{}.json"),
    "stories": (stories, _text, "{}.txt"),
    "pairs-aligned": (pairs, _aligned, "{0}.source.gz {0}.target.gz"),
    "characters-gb18030": (characters, _gb18030, "{}.tsv"),
    "labelled-shards": (labelled, _shards, "{}-*.tsv"),
    "labelled-parquet": (labelled, _parquet, "{}.parquet"),
    "related-semeval": (related, _semeval, "{}.semeval"),
    "tagged-conllu": (tagged, _conllu, "{}.conllu"),
    "tagged-lists": (tagged, _words, "{}.jsonl"),
    "multilabelled-lists": (multilabelled, _lists, "{}.jsonl"),
    "conversations-csv": (conversations, _replies, "{}.csv"),
    "questions-csv": (questions, _answers, "{}.csv"),
    "stories-jsonl": (stories, _documents, "{}.jsonl"),
}
"""What makes the rows, what writes them, the names of the files; after a hyphen, the same rows otherwise."""


def rows_of(corpus: str, split: str) -> list[dict[str, Any]]:
    make, _, _ = CORPORA[corpus]
    name, _, _ = corpus.partition("-")
    return list(make(random.Random(f"{name} {split}"), SIZES[split]))


def write(folder: Path, wanted: Iterable[str]) -> None:
    """Corpora as files below a folder."""
    for corpus in wanted:
        (folder / corpus).mkdir(parents=True)
        for split in SIZES:
            _, save, _ = CORPORA[corpus]
            save(folder / corpus / split, iter(rows_of(corpus, split)))


def files(corpus: str, split: str) -> list[str]:
    """Where a split stands, from the folder that `write` was given."""
    _, _, names = CORPORA[corpus]
    return [f"{corpus}/{name}" for name in names.format(split).split()]


def asked(corpus: str) -> list[Any]:
    """What models that learnt from a corpus are asked: its test set's inputs, and odd ones."""
    rows = rows_of(corpus, "test")
    odd: list[Any]
    match corpus.partition("-")[0]:
        case "pairs" | "characters" | "many_words":
            given: list[Any] = [row["source"] for row in rows]
            odd = ["Amber, unheard-of words!", " ".join(WORDS[:20])]
            given = [*given[: N_ASKED - len(odd) - 2], "amber", ""]
        case "documents":
            given = [row["document"] for row in rows]
            odd = ["stone", " ".join(WORDS * 2)]
        case "conversations":
            given = ["\n".join(row["turns"]) for row in rows]
            odd = ["amber birch", "amber\nbirch\ncedar\ndelta\nember", "fjord grove heath"]
            odd += ["unheard of", "river stone", "pearl\nquarry river", "oasis", "willow"]
        case "labelled_pairs":
            given = [{"text": row["text"], "second": row["second"]} for row in rows]
            odd = [{"text": " ".join(WORDS), "second": "amber birch"}]
        case "tagged_by_sign":
            given, odd = ["".join(row["words"]) for row in rows], ["七 四!", "一二三四五六七八九十" * 3]
        case "tagged" | "tagged_loosely":
            given = [" ".join(row["words"]) for row in rows]
            odd = ["The willow, unheard-of, stands near the river.", " ".join(WORDS * 2)]
        case "questions":
            given = [
                {"question": one["question"], "context": row["context"]} for row in rows for one in row["qas"]
            ]
            odd = [{"question": "where?", "context": " ".join(WORDS * 2)}]
        case "stories":
            given = [" ".join(row["sentences"][0].split()[:3]) for row in rows]
            odd = ["Amber birch", "Unheard-of words", "River stone", "North", "Pearl quarry", "Willow"]
        case _:
            given = [row["text"] for row in rows]
            odd = [] if corpus.startswith("related") else ["unheard-of words, and amber", " ".join(WORDS)]
    return [*odd, *given][:N_ASKED]


def asked_with_blanks() -> list[str]:
    """Sentences of the stories with a word or two hidden."""
    made = []
    for number, row in enumerate(rows_of("stories", "test") * 2):
        told = row["sentences"][0].rstrip(".!").split()
        told[number % len(told)] = "[MASK]"
        made.append(" ".join(told) + (" [MASK]." if number % 3 == 0 else "."))
    return made[:N_ASKED]

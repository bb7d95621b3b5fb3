"""English to pretrain from: running text of training splits, as documents with a sentence a line.

    python bench/pretrain_text.py DATA english.txt.gz valid.txt.gz

DATA holds the sets by their names (see docs/pretrain.md). Only training splits are read (of WikiText-2, which
has none here, the validation split), and no sentence is written that also stands in a validation or test
split of any of them: SST-2 and MR share their sources. Every hundredth document goes to valid.txt.gz, and no
sentence of it to the other. What people say of films and goods, a tenth of the words, is written five times,
so that it is not drowned by the rest.
"""

import argparse
import gzip
import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from regard.text.sentences import sentences

Documents = Iterator[list[str]]
HELD_BACK = {
    "mr_sentence_polarity": ("dev.tsv.gz", "test.tsv.gz"),
    "sst2": ("dev.tsv.gz", "test.tsv.gz"),
    "semeval2010_task8": ("test.tsv.gz",),
    "tatoeba_cmn_eng": ("val.tsv.gz", "test.tsv.gz"),
    "multi30k": ("val.en.gz", "test_2016_flickr.en.gz", "test_2017_flickr.en.gz"),
    "debian_desc_summarization": ("val.jsonl.gz", "test.jsonl.gz"),
    "dailydialog_pp": ("dev.jsonl.gz", "test.jsonl.gz"),
    "sgd_dialogue": ("dev.jsonl.gz", "test.jsonl.gz"),
    "squad_style_qa": (
        "squad_dev_half_answerable.json.gz",
        "squad2_dev_half_full.json.gz",
        "xquad_en.json.gz",
    ),
    "ud_english_ewt": ("en_ewt-ud-dev.conllu.gz", "en_ewt-ud-test.conllu.gz"),
    "wnut17": ("dev.conll", "test.conll"),
    "wikitext2_valid_test_only": ("test.txt.gz",),
}
MARKERS = re.compile(r"</?e[12]>")
SHAKESPEARE_TRAINED_ON = 0.9


def lines(path: Path) -> Iterator[str]:
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as file:
        yield from (line.rstrip("\n") for line in file)


def split(texts: Iterable[str]) -> list[str]:
    return [sentence for text in texts for sentence in sentences(" ".join(text.split()), "marks")]


def descriptions(path: Path) -> Documents:
    """A summary, then what it sums up."""
    for record in map(json.loads, lines(path)):
        yield split([record["summary"] + ".", record["document"]])


def dialogues(path: Path) -> Documents:
    for record in map(json.loads, lines(path)):
        turns = [turn for _, turn in record["turns"]] if "turns" in record else record["context"]
        yield split([*turns, *record.get("responses", ())[:1]])


def articles(path: Path) -> Documents:
    """The paragraphs that questions are asked about, each once."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        told: dict[str, Any] = json.load(file)
    for article in told["data"]:
        for paragraph in article["paragraphs"]:
            yield split([paragraph["context"]])


def treebank(path: Path) -> Documents:
    document: list[str] = []
    for line in lines(path):
        if line.startswith("# newdoc") and document:
            yield document
            document = []
        if line.startswith("# text = "):
            document.append(line.removeprefix("# text = "))
    yield document


def speeches(path: Path) -> Documents:
    """Shakespeare, a scene's worth of speeches at a time."""
    text = "\n".join(lines(path))
    parts = text[: int(SHAKESPEARE_TRAINED_ON * len(text))].split("\n\n")
    for at in range(0, len(parts), 8):
        yield split(parts[at : at + 8])


def paragraphs(path: Path) -> Documents:
    """Of WikiText: neither headings nor sentences with a word left out."""
    for line in lines(path):
        if line.strip() and not line.startswith(" = "):
            yield [sentence for sentence in split([line]) if "<unk>" not in sentence]


def posts(path: Path) -> Documents:
    """A word and its tag a line."""
    words: list[str] = []
    for line in chain(lines(path), [""]):
        if line.strip():
            words.append(line.split("\t")[0])
        elif words:
            yield [" ".join(words)]
            words = []


def alone(path: Path, column: int | None = None) -> Documents:
    """Sentences that stand for themselves."""
    for line in lines(path):
        yield [MARKERS.sub("", line if column is None else line.split("\t")[column]).strip()]


def read(path: Path) -> Documents:
    name = path.parent.name
    if path.name.endswith(".json.gz"):
        return articles(path)
    if path.name.endswith(".conllu.gz"):
        return treebank(path)
    if path.name.endswith(".jsonl.gz"):
        return descriptions(path) if name == "debian_desc_summarization" else dialogues(path)
    if path.name.endswith(".conll"):
        return posts(path)
    if name == "tiny_shakespeare":
        return speeches(path)
    if name == "wikitext2_valid_test_only":
        return paragraphs(path)
    columns = {"mr_sentence_polarity": 1, "sst2": 0, "semeval2010_task8": 1, "tatoeba_cmn_eng": 0}
    return alone(path, columns.get(name))


LEARNT_FROM = (
    "debian_desc_summarization/train.jsonl.gz",
    "sgd_dialogue/train.jsonl.gz",
    "dailydialog_pp/train.jsonl.gz",
    "squad_style_qa/squadshifts_newwiki.json.gz",
    "squad_style_qa/squadshifts_reddit.json.gz",
    "squad_style_qa/squadshifts_amazon.json.gz",
    "ud_english_ewt/en_ewt-ud-train.conllu.gz",
    "tiny_shakespeare/input.txt.gz",
    "multi30k/train.en.gz",
    "tatoeba_cmn_eng/train.tsv.gz",
    "semeval2010_task8/train.tsv.gz",
    "wnut17/train.conll",
    "wikitext2_valid_test_only/valid.txt.gz",
    "sst2/train.tsv.gz",
    "mr_sentence_polarity/train.tsv.gz",
)
REVIEWS = ("sst2", "mr_sentence_polarity", "squadshifts_amazon")
TIMES, HELD_OUT_EVERY = 5, 100


def key(sentence: str) -> str:
    """Two tokenisations of one sentence are the same sentence."""
    return re.sub(r"[^a-z0-9]+", "", sentence.lower())


def without(document: list[str], held_back: set[str]) -> list[str]:
    return [sentence for sentence in document if key(sentence) and key(sentence) not in held_back]


def write(path: Path, documents: Iterable[list[str]]) -> None:
    n_words = n_documents = 0
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=6) as sink:
        for document in documents:
            sink.write("\n".join(document) + "\n\n")
            n_words += sum(len(sentence.split()) for sentence in document)
            n_documents += 1
    print(f"{path.name}: {n_documents:,} documents, {n_words:,} words")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="the folder of the sets")
    parser.add_argument("train", type=Path, help="a .txt.gz to write")
    parser.add_argument("valid", type=Path, help="another, of other documents")
    options = parser.parse_args()
    held_back = {
        key(sentence)
        for name, files in HELD_BACK.items()
        for file in files
        for document in read(options.data / name / file)
        for sentence in document
    }
    found = [
        (name, kept)
        for name in LEARNT_FROM
        for document in read(options.data / name)
        if (kept := without(document, held_back))
    ]
    held_out = [document for _, document in found[::HELD_OUT_EVERY]]
    held_back |= {key(sentence) for document in held_out for sentence in document}
    learnt = [(name, kept) for name, document in found if (kept := without(document, held_back))]
    often = [document for name, document in learnt if any(part in name for part in REVIEWS)]
    write(options.train, [document for _, document in learnt] + (TIMES - 1) * often)
    write(options.valid, held_out)


if __name__ == "__main__":
    main()

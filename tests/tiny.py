"""The smallest models that still have every part, batches for them, and corpora they can learn.

Sizes are distinct, and prime where nothing has to divide them.
"""

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import regard
from regard.api.trained import Trained
from regard.fields.padding import NOWHERE
from regard.files.row import Row
from regard.layers.inputs import tokens
from regard.models import (
    AnswererConfig,
    BertPretrainingConfig,
    ClassifierConfig,
    GPTConfig,
    RelaterConfig,
    RNNConfig,
    RNNSeq2Seq,
    TaggerConfig,
    TransformerConfig,
    Widths,
)
from regard.tasks import Classify, ClassifyConfig, Tag, TagConfig, Translate, TranslateConfig
from regard.text.tokenizer import EOS

TAGS = ("B-LOC", "B-ORG", "B-PER", "I-LOC", "I-ORG", "I-PER", "O")
DIMS = Widths({"vocab": 17}, {"vocab": 19, "classes": 5, "tags": TAGS})
JOINT = Widths({"vocab": 19}, {"vocab": 19}, shared=True)
FIRST = 4
"""The first id that is not a special piece."""


def transformer(**changes: Any) -> TransformerConfig:
    sizes = {"d_model": 12, "n_heads": 3, "d_ff": 11, "n_encoder_layers": 2, "n_decoder_layers": 2}
    return TransformerConfig(**{**sizes, "max_positions": 13, "dropout": 0.0} | changes)


def rnn(**changes: Any) -> RNNConfig:
    return RNNConfig(**{"d_embed": 7, "d_hidden": 6, "dropout": 0.0} | changes)


def gpt(**changes: Any) -> GPTConfig:
    sizes = {"d_model": 12, "n_heads": 3, "d_ff": 11, "n_layers": 2, "max_positions": 13, "dropout": 0.0}
    return GPTConfig(**sizes | changes)


ENCODERS: dict[str, dict[str, Any]] = {
    "transformer": {"d_model": 12, "n_heads": 3, "d_ff": 11, "n_layers": 2, "max_positions": 13},
    "rnn": {"d_embed": 7, "d_hidden": 6, "n_layers": 2},
    "words": {"d_embed": 7},
    "bert": {"d_model": 12, "n_heads": 3, "d_ff": 11, "n_layers": 2, "max_positions": 14, "norm_eps": 1e-3},
}


def classifier(
    kind: str, pooling: str = "attention", ngrams: dict[str, Any] | None = None, **changes: Any
) -> ClassifierConfig:
    encoder = {"kind": kind, "dropout": 0.0} | ENCODERS[kind] | changes
    settings = {"encoder": encoder, "pooling": pooling, "dropout": 0.0, "ngrams": ngrams}
    return ClassifierConfig.model_validate(settings)


NGRAMS = {"longest": 3, "characters": 2, "buckets": 13, "dropout": 0.0}


def tagger(kind: str, *, crf: bool = True, **changes: Any) -> TaggerConfig:
    encoder = {"kind": kind, "dropout": 0.0} | ENCODERS[kind] | changes
    return TaggerConfig.model_validate({"encoder": encoder, "crf": crf, "dropout": 0.0})


def relater(kind: str, **changes: Any) -> RelaterConfig:
    encoder = {"kind": kind, "dropout": 0.0} | ENCODERS[kind]
    return RelaterConfig.model_validate({"encoder": encoder, "dropout": 0.0} | changes)


def answerer(kind: str, **changes: Any) -> AnswererConfig:
    encoder = {"kind": kind, "dropout": 0.0} | ENCODERS[kind] | changes
    return AnswererConfig.model_validate({"encoder": encoder, "dropout": 0.0})


def to_pretrain(**changes: Any) -> BertPretrainingConfig:
    encoder = {"kind": "bert", "dropout": 0.0} | ENCODERS["bert"] | {"max_positions": 24} | changes
    return BertPretrainingConfig.model_validate({"encoder": encoder})


def stirred(model: nn.Module) -> nn.Module:
    """Every weight random, those too that begin as zeros or ones and could hide a mistake."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.5)
    return model.eval()


def endless(model: nn.Module) -> nn.Module:
    """An RNN that goes on writing until it must end, so that a longer source has a longer search."""
    assert isinstance(model, RNNSeq2Seq)
    with torch.no_grad():
        model.output_bias[EOS] = -100.0
    return model


@dataclass
class Inputs:
    """What a model is given: rows of unequal length, padded with ids that mean something."""

    source_BK: Tensor
    lengths_B: Tensor
    target_BT: Tensor

    def row(self, i: int) -> "Inputs":
        """One row alone, without its padding."""
        length = int(self.lengths_B[i])
        own = slice(i, i + 1)
        return Inputs(self.source_BK[own, :length], self.lengths_B[own], self.target_BT[own])

    @property
    def texts(self) -> tuple[Tensor, Tensor]:
        return self.source_BK, self.lengths_B

    @property
    def sources(self) -> Mapping[str, Tensor]:
        """The tensors of the source alone."""
        return tokens(self.source_BK, self.lengths_B)

    @property
    def segments(self) -> Tensor:
        """Two texts a row: the first two pieces are one."""
        return (torch.arange(self.source_BK.shape[1]) > 1).long().expand_as(self.source_BK)

    @property
    def words(self) -> dict[str, Tensor]:
        """Every token a word."""
        places_BN = torch.arange(self.source_BK.numel()).view_as(self.source_BK)
        keep_BN = torch.arange(places_BN.shape[1]) < self.lengths_B[:, None]
        return {**tokens(*self.texts), "places": places_BN.masked_fill(~keep_BN, NOWHERE)}

    def marked(self, first_mark: int) -> "Inputs":
        """Every row after the four marks of two entities that hold nothing."""
        marks_B4 = torch.arange(first_mark, first_mark + 4).expand(len(self.lengths_B), 4)
        return Inputs(torch.cat([marks_B4, self.source_BK], 1), self.lengths_B + 4, self.target_BT)

    @property
    def pairs(self) -> tuple[Mapping[str, Tensor], Tensor]:
        return self.sources, self.target_BT


def inputs(lengths: tuple[int, ...] = (7, 3, 5, 1), target_length: int = 5, widths: Widths = DIMS) -> Inputs:
    return Inputs(
        torch.randint(FIRST, widths.input["vocab"], (len(lengths), max(lengths))),
        torch.tensor(lengths),
        torch.randint(
            FIRST, widths.target.get("vocab", widths.input["vocab"]), (len(lengths), target_length)
        ),
    )


WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet", "jetty", "knoll")
PLANTED = {"amber", "ember", "inlet"}


def mirrored(
    folder: Path, n_lines: int, name: str = "train", *, longest: int = 4, seed: int = 1
) -> list[str]:
    """Two aligned files: random sentences, and the same backwards."""
    rng = random.Random(f"{name} {seed}")
    sentences = [rng.choices(WORDS, k=rng.randint(1, longest)) for _ in range(n_lines)]
    paths = []
    for side, lines in (("source", sentences), ("target", [words[::-1] for words in sentences])):
        path = folder / f"{name}.{side}"
        path.write_text("".join(" ".join(words) + "\n" for words in lines), "utf-8")
        paths.append(str(path))
    return paths


def planted(folder: Path, n_lines: int, name: str = "train", *, longest: int = 5, seed: int = 1) -> list[str]:
    """A CSV of random sentences; the label says whether one of three words is there, as in every second."""
    rng = random.Random(f"{name} {seed}")
    lines = ["text,label"]
    for number in range(n_lines):
        words = rng.choices(sorted(set(WORDS) - PLANTED), k=rng.randint(1, longest))
        if number % 2:
            words[rng.randrange(len(words))] = rng.choice(sorted(PLANTED))
        lines.append(f"{' '.join(words)},{'yes' if number % 2 else 'no'}")
    path = folder / f"{name}.csv"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return [str(path)]


def named(folder: Path, n_lines: int, name: str = "train", *, longest: int = 6, seed: int = 1) -> list[str]:
    """A CoNLL file: of two planted words in a row, the first begins a span and the second goes on with it."""
    rng = random.Random(f"{name} {seed}")
    lines: list[str] = []
    for _ in range(n_lines):
        before = "O"
        for word in rng.choices(WORDS, k=rng.randint(1, longest)):
            before = "O" if word not in PLANTED else "B-TREE" if before == "O" else "I-TREE"
            lines.append(f"{word} {before}")
        lines.append("")
    path = folder / f"{name}.conll"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return [str(path)]


def paired(folder: Path, n_lines: int, name: str = "train", *, longest: int = 6, seed: int = 1) -> list[str]:
    """A TSV of sentences with two planted words, marked: the first in the alphabet rules the other."""
    rng = random.Random(f"{name} {seed}")
    lines = []
    for _ in range(n_lines):
        words = rng.choices(sorted(set(WORDS) - PLANTED), k=rng.randint(2, longest))
        first, second = sorted(rng.sample(range(len(words)), 2))
        one, other = rng.choices(sorted(PLANTED), k=2)
        label = "Other" if one == other else f"Rules({'e1,e2' if one < other else 'e2,e1'})"
        words[first], words[second] = f"<e1>{one}</e1>", f"<e2>{other}</e2>"
        lines.append(f"{label}\t{' '.join(words)}")
    path = folder / f"{name}.tsv"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return [str(path)]


TOKENIZER = {"kind": "word", "vocab_size": 60, "min_frequency": 1}


TRAIN = {"warmup": 3, "log_every": 1, "device": "cpu", "baselines": False}


def recipe(
    folder: Path, data: dict[str, Any], model: dict[str, Any], task: str, **train: Any
) -> regard.Recipe:
    return regard.Recipe.parse(
        {
            "run": str(folder / "run"),
            "task": {"kind": task, "tokenizer": TOKENIZER},
            "data": data,
            "model": model,
            "train": {"max_steps": 4, "batch_tokens": 200} | TRAIN | train,
        }
    )


def translating(folder: Path, **train: Any) -> regard.Recipe:
    data = {
        "train": mirrored(folder, 43),
        "valid": mirrored(folder, 7, "valid"),
        "test": mirrored(folder, 5, "test"),
    }
    return recipe(folder, data, transformer().model_dump(), "translate", **train)


def told(n_words: int, seed: int = 1) -> str:
    """Sentences of a line each, blank lines now and then, in which each word tells the next."""
    rng = random.Random(seed)
    text = ""
    for number in range(n_words):
        word = WORDS[number % len(WORDS)]
        text += word + rng.choice((" ", " ", " ", ".\n", ".\n\n"))
    return text.strip() + "\n"


def continuing(folder: Path, *, documents: str = "files", **train: Any) -> regard.Recipe:
    (folder / "text.txt").write_text(told(211), "utf-8")
    (folder / "test.txt").write_text(told(31, seed=2), "utf-8")
    data = {"train": str(folder / "text.txt"), "test": str(folder / "test.txt")}
    return regard.Recipe.parse(
        {
            "run": str(folder / "run"),
            "task": {
                "kind": "language_model",
                "documents": documents,
                "max_length": 12,
                "tokenizer": {"kind": "char", "vocab_size": 60, "min_frequency": 1},
                "decode": {"max_length": 29},
            },
            "data": data,
            "model": gpt(dropout=0.1).model_dump(),
            "train": {"max_steps": 4, "batch_tokens": 60} | TRAIN | train,
        }
    )


def storied(folder: Path, n_documents: int, name: str = "train", *, longest: int = 5, seed: int = 1) -> str:
    """Documents of sentences a line, blank lines between: each sentence counts on from the one before."""
    rng = random.Random(f"{name} {seed}")
    documents = []
    for _ in range(n_documents):
        first, n_sentences = rng.randrange(len(WORDS)), rng.randint(1, longest)
        lines = [
            " ".join(WORDS[(first + number + n) % len(WORDS)] for n in range(rng.randint(2, 4))) + "."
            for number in range(n_sentences)
        ]
        documents.append("\n".join(lines))
    path = folder / f"{name}.txt"
    path.write_text("\n\n".join(documents) + "\n", "utf-8")
    return str(path)


def pretraining(folder: Path, **train: Any) -> regard.Recipe:
    data = {"train": storied(folder, 61), "test": storied(folder, 11, "test")}
    return regard.Recipe.parse(
        {
            "run": str(folder / "run"),
            "task": {
                "kind": "pretrain",
                "max_length": 21,
                "tokenizer": {"vocab_size": 200, "min_frequency": 1},
            },
            "data": data,
            "model": to_pretrain(dropout=0.1).model_dump(),
            "train": {"max_steps": 4, "batch_tokens": 120} | TRAIN | train,
        }
    )


def classifying(folder: Path, **train: Any) -> regard.Recipe:
    data = {
        "train": planted(folder, 43),
        "valid": planted(folder, 7, "valid"),
        "test": planted(folder, 5, "test"),
    }
    return recipe(folder, data, classifier("rnn").model_dump(), "classify", **train)


def asked(folder: Path, n_contexts: int, name: str = "train", *, seed: int = 1) -> list[str]:
    """A file of SQuAD: contexts that say where trees stand; a tree that is not named has no answer."""
    rng = random.Random(f"{name} {seed}")
    paragraphs = []
    for number in range(n_contexts):
        trees, lands = rng.sample(WORDS[:5], 3), rng.sample(WORDS[5:], 2)
        context = f"{trees[0]} in {lands[0]}, {trees[1]} in the {lands[1]}."
        qas = []
        for at, tree in enumerate(trees):
            place = [{"text": land, "answer_start": context.index(land)} for land in lands[at : at + 1]]
            asks = {"id": f"{name}-{number}-{at}", "question": f"where is {tree}?", "answers": place}
            qas.append(asks | ({} if place else {"is_impossible": True}))
        paragraphs.append({"context": context, "qas": qas})
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"version": "v2.0", "data": [{"title": "trees", "paragraphs": paragraphs}]}))
    return [str(path)]


def answering(folder: Path, kind: str = "rnn", **train: Any) -> regard.Recipe:
    data = {"train": asked(folder, 43), "valid": asked(folder, 7, "valid"), "test": asked(folder, 5, "test")}
    made = recipe(folder, data, answerer(kind).model_dump(), "answer", **train).model_dump(mode="json")
    made["task"] |= {"max_length": 20, "overlap": 3, "max_question": 6, "max_answer": 2}
    return regard.Recipe.parse(made)


def tagging(folder: Path, model: dict[str, Any] | None = None, **train: Any) -> regard.Recipe:
    data = {
        "train": named(folder, 43),
        "valid": named(folder, 7, "valid"),
        "test": named(folder, 5, "test"),
    }
    return recipe(folder, data, model or tagger("rnn").model_dump(), "tag", **train)


def counting(folder: Path, **train: Any) -> regard.Recipe:
    """A tagger that has learnt what there is to learn in no time."""
    return tagging(folder, {"kind": "hmm"}, **train)


def relating(folder: Path, **train: Any) -> regard.Recipe:
    data = {
        "train": paired(folder, 43),
        "valid": paired(folder, 7, "valid"),
        "test": paired(folder, 5, "test"),
        "columns": {"label": 1, "text": 2},
    }
    return recipe(folder, data, relater("rnn").model_dump(), "relation", **train)


def summarizing(folder: Path, **train: Any) -> regard.Recipe:
    """Documents of random words; the summary is the planted ones among them, or the first."""
    data = {}
    for name, n_rows in (("train", 43), ("valid", 7), ("test", 5)):
        rng = random.Random(name)
        path = folder / f"{name}.jsonl"
        with path.open("w", encoding="utf-8") as file:
            for _ in range(n_rows):
                words = rng.choices(WORDS, k=rng.randint(7, 13))
                summary = [word for word in words if word in PLANTED] or words[:1]
                file.write(json.dumps({"document": " ".join(words), "summary": " ".join(summary)}) + "\n")
        data[name] = [str(path)]
    return recipe(folder, data, transformer(max_positions=300).model_dump(), "summarize", **train)


def talking(folder: Path, model: dict[str, Any] | None = None, **train: Any) -> regard.Recipe:
    """Conversations in which every turn goes on where the one before ended; and a test with two replies."""
    data = {}
    for name, n_rows in (("train", 23), ("valid", 7)):
        rng = random.Random(name)
        path = folder / f"{name}.jsonl"
        with path.open("w", encoding="utf-8") as file:
            for _ in range(n_rows):
                at, turns = rng.randrange(len(WORDS)), []
                for _ in range(rng.randint(2, 4)):
                    n = rng.randint(1, 3)
                    turns.append(" ".join(WORDS[(at + i) % len(WORDS)] for i in range(n)))
                    at += n
                file.write(json.dumps({"turns": turns}) + "\n")
        data[name] = [str(path)]
    tests = [{"context": ["amber", "birch cedar"], "responses": ["delta", "delta ember"]}]
    (folder / "test.jsonl").write_text(json.dumps(tests[0]) + "\n", "utf-8")
    data["test"] = [str(folder / "test.jsonl")]
    return recipe(folder, data, model or rnn(dropout=0.1).model_dump(), "dialogue", **train)


def untrained(config: Any, **changes: Any) -> Trained:
    """A translator, classifier or tagger with random weights: enough to look at."""
    rows = [
        Row(
            {"text": text, "label": label, "source": text, "target": text[::-1], "tags": "O O B-X I-X O"},
            "x",
            1,
        )
        for text, label in (("the grey heron stands still", "bird"), ("fog lies on the river", "weather"))
    ]
    task: Any
    if config.kind == "classifier":
        task = Classify.fit(ClassifyConfig.model_validate({"tokenizer": TOKENIZER}), rows)
    elif config.kind == "tagger":
        task = Tag.fit(TagConfig.model_validate({"tokenizer": TOKENIZER} | changes), rows)
    else:
        settings = {"tokenizer": TOKENIZER, "max_length": 200} | changes
        task = Translate.fit(TranslateConfig.model_validate(settings), rows)
    return Trained(task, task.config, stirred(config.build(task.widths)), config, {}, torch.device("cpu"))

"""The cases of `make same-as`: recipes that between them take every numeric path that a recipe can take.

A case says what the old side is told; the new side is told the same, with the changes of `RENAMED` (which
apply to all cases) and those of the case itself. When a setting gets another name, one line in `RENAMED`
translates it everywhere; when it gets other values, `new` of the cases that set it does.
"""

import fnmatch
import sys
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent / "workers"))

import same_data

Recipe = dict[str, Any]
STEPS = 30
RENAMED: tuple[Callable[[Recipe], None], ...] = ()
"""Each changes a recipe of the old side in place, so that it says the same to the new side."""
RENAMED_SEARCH: tuple[Callable[[Recipe], None], ...] = ()
"""Each changes the settings of a search in the same way."""
CORPUS = {
    "translate": "pairs",
    "summarize": "documents",
    "dialogue": "conversations",
    "classify": "labelled",
    "classify_pair": "labelled_pairs",
    "multilabel": "multilabelled",
    "tag": "tagged",
    "relation": "related",
    "answer": "questions",
    "language_model": "stories",
    "pretrain": "stories",
}
PAIRS = {"source": 1, "target": 2}
COLUMNS: dict[str, Recipe] = {
    "pairs": PAIRS,
    "many_words": PAIRS,
    "characters": PAIRS,
    "characters-gb18030": PAIRS,
    "related": {"label": 1, "text": 2},
    "labelled-shards": {"text": 1, "label": 2},
    "tagged-conllu": {"text": 2, "tags": 4},
}
WORD = {"kind": "word", "vocab_size": 80, "min_frequency": 1}
TASKS: dict[str, Recipe] = {
    "translate": {"max_length": 40, "decode": {"min_length": 2}, "tokenizer": WORD},
    "summarize": {"max_length": 40, "decode": {"min_length": 2}, "tokenizer": WORD},
    "dialogue": {"max_length": 24, "tokenizer": WORD},
    "classify": {"max_length": 20, "tokenizer": WORD},
    "classify_pair": {"max_length": 20, "tokenizer": WORD},
    "multilabel": {"max_length": 20, "tokenizer": WORD},
    "tag": {"max_length": 16, "tokenizer": WORD},
    "relation": {"max_length": 24, "tokenizer": WORD},
    "answer": {
        "max_length": 28,
        "overlap": 6,
        "max_question": 8,
        "max_answer": 4,
        "tokenizer": WORD,
    },
    "language_model": {
        "max_length": 24,
        "documents": "paragraphs",
        "decode": {"max_length": 20},
        "tokenizer": {"kind": "char", "vocab_size": 80, "min_frequency": 1},
    },
    "pretrain": {"max_length": 30, "tokenizer": {"vocab_size": 150, "min_frequency": 1}},
}
TRAIN: Recipe = {
    "max_steps": STEPS,
    "eval_every": 10,
    "batch_tokens": 240,
    "warmup": 10,
    "lr": 1e-2,
    "log_every": 1,
    "device": "cpu",
    "threads": 1,
}
LAYER = {"d_model": 24, "n_heads": 4, "d_ff": 40, "dropout": 0.1}
TRANSFORMER = {"kind": "transformer", "n_encoder_layers": 2, "n_decoder_layers": 2} | LAYER
GPT = {"kind": "gpt", "n_layers": 2, "max_positions": 200} | LAYER
ENCODERS: dict[str, Recipe] = {
    "transformer": {"kind": "transformer", "n_layers": 2, "max_positions": 64} | LAYER,
    "rnn": {"kind": "rnn", "d_embed": 20, "d_hidden": 24, "dropout": 0.2},
    "words": {"kind": "words", "d_embed": 20, "dropout": 0.2},
    "bert": {"kind": "bert", "n_layers": 2, "max_positions": 64} | LAYER,
}
SEARCHES: dict[str, Recipe] = {
    "greedy": {"beam": 1},
    "beam 4, three best": {"beam": 4, "n_best": 3, "length_penalty": 0.6},
    "drawn": {"sample": True, "seed": 7, "temperature": 0.8, "top_k": 9, "n_best": 2},
}
"""Of tasks that write."""
SEARCHING = ("translate", "summarize", "dialogue", "language_model")


@dataclass(frozen=True)
class Case:
    name: str
    old: Recipe
    new: Callable[[Recipe], None] | None = None
    """Changes the recipe for the new side, after RENAMED."""
    asked: list[Any] = field(default_factory=list)
    searches: dict[str, Recipe] = field(default_factory=dict)
    """How all of it is asked, beside the recipe's own way."""
    explained: list[Any] = field(default_factory=list)
    before: tuple[Recipe, ...] = ()
    """Trained first, to begin with or to answer beside."""
    folders: tuple[str, ...] = ()
    """Of Hugging Face, made first: names in same_folders.FOLDERS."""
    also: tuple[str, ...] = ()
    """What else is done: methods of the worker's Case."""
    drafts: bool = False
    """Nothing is trained: only what `regard init` and `regard check` make of the files counts."""

    def job(self, side: str) -> dict[str, Any]:
        """What the worker is told."""
        recipe = told(side, self.old, self.new)
        writes = self.old["task"]["kind"] in ("translate", "summarize", "dialogue")
        greedy = {"of evaluate, greedily": {"beam": 1}} if writes else {}
        evaluated: dict[str, Recipe] = {"of evaluate": {}} | greedy
        return {
            "name": self.name,
            "recipe": recipe,
            "before": [told(side, own, self.new) for own in self.before],
            "folders": self.folders,
            "asked": self.asked,
            "searches": {name: searching(side, own) for name, own in self.searches.items()},
            "explained": self.explained,
            "evaluated": {name: searching(side, own) for name, own in evaluated.items()},
            "files": recipe["data"]["test"],
            "columns": recipe["data"].get("columns"),
            "corpora": sorted(
                {file.partition("/")[0] for own in (self.old, *self.before) for file in _read(own)}
            ),
            "drafts": self.drafts,
            "also": self.also,
            "stop_after": STEPS // 2,
        }


def _read(recipe: Recipe) -> Iterator[str]:
    """All files of a recipe."""
    for split in same_data.SIZES:
        yield from recipe["data"].get(split, ())


def told(side: str, recipe: Recipe, new: Callable[[Recipe], None] | None = None) -> Recipe:
    """A recipe as a side understands it; `new` changes it further for the new one."""
    return _changed(recipe, (*RENAMED, *([new] if new else []))) if side == "new" else recipe


def searching(side: str, search: Recipe) -> Recipe:
    """The settings of a search as a side understands them."""
    return _changed(search, RENAMED_SEARCH) if side == "new" else search


def _changed(settings: Recipe, changes: Iterable[Callable[[Recipe], None]]) -> Recipe:
    settings = deepcopy(settings)
    for change in changes:
        change(settings)
    return settings


def recipe(
    task: str, model: Recipe, parts: dict[str, Recipe], *, corpus: str = "", run: str = "run"
) -> Recipe:
    """Of a task on its corpus; `parts` are changes of its tables, None takes a setting away."""
    corpus = corpus or CORPUS[task]
    data: Recipe = {split: same_data.files(corpus, split) for split in same_data.SIZES}
    if corpus in COLUMNS:
        data["columns"] = COLUMNS[corpus]
    train = TRAIN | ({"lr": 4e-3} if task in SEARCHING else {})
    tables = {"task": {"kind": task} | TASKS[task], "data": data, "model": model, "train": train}
    made: Recipe = {"run": run, "seed": 3}
    for name, table in tables.items():
        changed = table | parts.get(name, {})
        made[name] = {setting: value for setting, value in changed.items() if value is not None}
    return made


def case(
    name: str,
    kind: str,
    model: Recipe,
    /,
    *,
    corpus: str = "",
    searches: dict[str, Recipe] | None = None,
    before: tuple[Recipe, ...] = (),
    folders: tuple[str, ...] = (),
    also: tuple[str, ...] = (),
    **parts: Recipe,
) -> Case:
    """A case of a task on its corpus, asked what the corpus asks; `name` is added to that of the task."""
    asked = same_data.asked_with_blanks() if kind == "pretrain" else same_data.asked(corpus or CORPUS[kind])
    default = SEARCHES if kind in SEARCHING else {}
    return Case(
        name=f"{kind}-{name}",
        old=recipe(kind, model, parts, corpus=corpus),
        asked=asked,
        searches=default if searches is None else searches,
        explained=asked[1:3],
        before=before,
        folders=folders,
        also=also,
    )


def encoding(kind: str, encoder: str, of_encoder: Recipe | None = None, **changes: Any) -> Recipe:
    """A model with an encoder under its head."""
    return {"kind": kind, "encoder": ENCODERS[encoder] | (of_encoder or {}), "dropout": 0.2} | changes


def begun(kind: str, init_from: str, **changes: Any) -> Recipe:
    """A model whose encoder begins as another's."""
    return {"kind": kind, "init_from": init_from, "dropout": 0.2} | changes


BERT = {"kind": "bert_pretraining", "encoder": ENCODERS["bert"]}
PRETRAINED = recipe("pretrain", BERT, {}, run="before")
"""A BERT to begin with."""
OWN = {"tokenizer": None}
"""No vocabulary: that of what the model begins with."""

SMOKE = (
    case("transformer", "classify", encoding("classifier", "transformer")),
    case("transformer", "translate", TRANSFORMER, also=("resumed",)),
    case("rnn-crf", "tag", encoding("tagger", "rnn"), also=("resumed",)),
    case("rnn", "answer", encoding("answerer", "rnn")),
    case("gpt", "language_model", GPT),
)


def transformers() -> Iterator[Case]:
    """Translators: the kinds of layers, of vocabularies, of searches."""
    layers: dict[str, Recipe] = {
        "pre-swiglu-rotary-grouped": {
            "norm": "pre",
            "activation": "swiglu",
            "position": "rotary",
            "bias": False,
            "n_kv_heads": 2,
        },
        "learned-gelu-dropouts": {
            "position": "learned",
            "max_positions": 100,
            "activation": "gelu",
            "word_dropout": 0.1,
            "inner_dropout": 0.1,
            "attention_dropout": 0.1,
        },
        "relative": {"position": "relative"},
        "alibi-pre": {"position": "alibi", "norm": "pre"},
        "no-position-gelu-tanh": {"position": "none", "activation": "gelu_tanh", "norm_eps": 1e-3},
        "untied": {"tie_embeddings": False},
        "no-dropout": {"dropout": 0.0},
    }
    for name, changes in layers.items():
        yield case(f"transformer-{name}", "translate", TRANSFORMER | changes)
    preset: Recipe = {"kind": "transformer", "preset": "tiny", "n_encoder_layers": 1, "n_decoder_layers": 1}
    yield case("transformer-preset", "translate", preset)
    joint = {"joint": True}
    yield case("transformer-joint", "translate", TRANSFORMER, task=joint, also=("served",))
    yield case("transformer-joint-untied", "translate", TRANSFORMER | {"tie_embeddings": False}, task=joint)
    copies = TRANSFORMER | {"copies": True}
    yield case("transformer-copies", "translate", copies, task=joint, also=("searched",))
    yield case("transformer-unsmoothed", "translate", TRANSFORMER, task={"label_smoothing": 0.0})
    yield case("transformer-smoothed", "translate", TRANSFORMER, task={"label_smoothing": 0.3})
    held_out = {"valid": None}
    yield case("transformer-held-out", "translate", TRANSFORMER, data=held_out, also=("followed",))
    pieces: dict[str, tuple[str, Recipe]] = {
        "char": ("characters", {"kind": "char", "vocab_size": 60, "min_frequency": 1}),
        "bpe": ("characters", {"kind": "bpe", "vocab_size": 300, "lowercase": True}),
        "unigram": ("pairs", {"kind": "unigram", "vocab_size": 320}),
        "wordpiece": ("pairs", {"kind": "wordpiece", "vocab_size": 90}),
        "rare-words": ("pairs", {"kind": "word", "vocab_size": 20, "min_frequency": 5}),
    }
    for name, (corpus, tokenizer) in pieces.items():
        task = {"tokenizer": tokenizer, "max_length": 60}
        yield case(f"transformer-{name}", "translate", TRANSFORMER, corpus=corpus, task=task)
    yield case("transformer-short", "translate", TRANSFORMER, task={"max_length": 6})
    yield case("transformer-searches", "translate", TRANSFORMER, searches=MANY_SEARCHES)
    many: Recipe = {"tokenizer": WORD | {"vocab_size": 6000}}
    large = {"batch_tokens": 4096}
    yield case("many-words", "translate", TRANSFORMER, corpus="many_words", task=many, train=large)
    other = recipe("translate", TRANSFORMER, {}, run="before") | {"seed": 8}
    yield case("transformer-together", "translate", TRANSFORMER, before=(other,), also=BESIDE)
    yield case("transformer-exported", "translate", TRANSFORMER, also=("to_hf", "to_onnx"))


BESIDE = ("together", "compared", "ct2")
MANY_SEARCHES: dict[str, Recipe] = {
    "beam 4": {"min_length": 0},
    "groups": {"beam": 6, "groups": 3, "diversity": 0.8, "n_best": 4},
    "no length penalty": {"length_penalty": 0.0, "beam": 3},
    "prefix": {"prefix": "amber birch"},
    "must not": {"must_not": ["amber", "birch cedar"]},
    "must include": {"must_include": ["pearl", "river stone"], "beam": 5},
    "must include and not": {"must_include": ["pearl"], "must_not": ["amber"], "prefix": "cedar"},
    "no repeat": {"no_repeat": 2},
    "penalty": {"repetition_penalty": 1.7},
    "lengths": {"min_length": 5, "max_length": 7},
    "ratio": {"max_ratio": 0.5},
    "no scores": {"scores": False, "beam": 1},
    "invariant": {"batch_invariant": True},
    "drawn": {"sample": True, "seed": 7, "n_best": 3},
    "drawn by top p": {"sample": True, "seed": 8, "top_p": 0.7, "temperature": 1.3},
    "drawn by min p": {"sample": True, "seed": 9, "min_p": 0.2, "top_k": 12},
    "drawn with rules": {"sample": True, "must_not": ["amber"], "no_repeat": 1, "prefix": "pearl"},
}


DRAWN = {name: own for name, own in MANY_SEARCHES.items() if own.get("sample")}


def trainings() -> Iterator[Case]:
    """Ways to train, on a translator or a classifier."""
    ways: dict[str, Recipe] = {
        "adamw-cosine": {"optimizer": "adamw", "weight_decay": 0.1, "schedule": "cosine"},
        "muon-linear": {"optimizer": "muon", "schedule": "linear", "weight_decay": 0.01},
        "paper-unclipped": {"schedule": "paper", "lr": 1.0, "clip_norm": 0.0, "eps": 1e-6},
        "constant-clipped": {"schedule": "constant", "clip_norm": 0.1, "betas": [0.8, 0.95], "warmup": 0},
        "accumulate": {"accumulate": 3},
        "ema": {"ema": 0.8},
        "average": {"average": 3},
        "ema-average": {"ema": 0.8, "average": 2, "save_every": 7},
        "spike": {"spike": 1.05, "batch_tokens": 60, "max_steps": 100, "lr": 1e-3},
        "rolled-back": {"spike": 1.001, "batch_tokens": 40, "max_steps": 150, "eval_every": 40, "lr": 1e-3},
        "bfloat16": {"precision": "bfloat16"},
        "muon-bfloat16": {"precision": "bfloat16", "optimizer": "muon"},
        "single": {"precision": "single"},
        "epochs-patience": {"max_steps": None, "max_epochs": 6, "patience": 2, "eval_every": None},
        "no-workers": {"workers": 0},
        "auto": {"batch_tokens": "auto"},
    }
    resumed = ("ema-average", "muon-linear")
    for name, train in ways.items():
        also = ("resumed",) if name in resumed else ()
        yield case(f"train-{name}", "translate", TRANSFORMER, train=train, searches={}, also=also)
    wide = {"d_model": 128, "n_heads": 4, "d_ff": 160}
    for precision in ("auto", "single"):
        train = {"precision": precision}
        yield case(f"train-wide-{precision}", "translate", TRANSFORMER | wide, train=train, searches={})
    others: dict[str, Recipe] = {"muon": {"optimizer": "muon"}, "accumulate": {"accumulate": 4}}
    for name, train in others.items():
        yield case(f"train-{name}", "classify", encoding("classifier", "transformer"), train=train)
        yield case(f"train-{name}", "tag", encoding("tagger", "rnn"), train=train)
        yield case(f"train-{name}", "pretrain", BERT, train=train)
    wide_encoder = encoding("classifier", "transformer", {"d_model": 128})
    yield case("train-wide-auto", "classify", wide_encoder)


def recurrent() -> Iterator[Case]:
    """Recurrent translators: every score in both orders, and what else they have."""
    base: Recipe = {"kind": "rnn_seq2seq", "d_embed": 24, "d_hidden": 24, "dropout": 0.2}
    cells = ("gru", "lstm", "rnn")
    for place, score in enumerate(("none", "dot", "scaled_dot", "general", "additive")):
        for at, order in enumerate(("bahdanau", "luong")):
            model = base | {"attention": score, "order": order, "cell": cells[(place + at) % 3]}
            also = ("resumed",) if (score, order) == ("additive", "luong") else ()
            yield case(f"rnn-{score}-{order}", "translate", model, also=also)
    others: dict[str, Recipe] = {
        "unfed-added": {"order": "luong", "input_feeding": False, "combine": "add"},
        "layers-one-way": {"n_layers": 2, "bidirectional": False, "cell": "lstm"},
        "layers-luong": {"n_layers": 2, "order": "luong", "attention": "general"},
        "untied-added": {"tie_embeddings": False, "d_embed": 16, "combine": "add"},
        "no-dropout": {"dropout": 0.0},
    }
    for name, changes in others.items():
        yield case(f"rnn-{name}", "translate", base | changes)
    for order in ("bahdanau", "luong"):
        copies = base | {"copies": True, "order": order}
        yield case(f"rnn-copies-{order}", "translate", copies, task={"joint": True})
    yield case("rnn-searches", "translate", base, searches=MANY_SEARCHES, also=("followed", "searched"))
    yield case("rnn-exported", "translate", base, also=("to_onnx",))
    yield case("rnn", "summarize", base)
    yield case("rnn-copies", "summarize", base | {"copies": True}, data={"valid": None})
    yield case("rnn", "dialogue", base)


def writers() -> Iterator[Case]:
    """Summaries, replies, texts that go on."""
    yield case("transformer", "summarize", TRANSFORMER, also=("followed",))
    yield case("transformer-copies", "summarize", TRANSFORMER | {"copies": True})
    yield case("transformer-apart", "summarize", TRANSFORMER, task={"joint": False, "max_length": 16})
    yield case("transformer", "dialogue", TRANSFORMER, task={"turns": 2})
    yield case("transformer-held-out", "dialogue", TRANSFORMER | {"copies": True}, data={"valid": None})
    yield case("gpt", "dialogue", GPT, also=("followed",))
    yield case("gpt-one-turn", "dialogue", GPT, task={"turns": 1}, data={"valid": None})
    models: dict[str, Recipe] = {
        "rotary-swiglu": {"position": "rotary", "activation": "swiglu", "n_kv_heads": 2, "bias": False},
        "relative-post": {"position": "relative", "norm": "post"},
        "alibi-dropouts": {"position": "alibi", "word_dropout": 0.1, "attention_dropout": 0.1},
        "sinusoidal-untied": {"position": "sinusoidal", "tie_embeddings": False},
    }
    for name, changes in models.items():
        yield case(f"gpt-{name}", "language_model", GPT | changes)
    bpe = {"tokenizer": {"kind": "bpe", "vocab_size": 330}, "documents": "lines"}
    yield case("gpt-bpe-lines", "language_model", GPT, task=bpe, also=("to_hf",))
    whole = {"documents": "files", "label_smoothing": 0.1}
    yield case("gpt-files-held-out", "language_model", GPT, task=whole, data={"valid": None})
    beams = {"decode": {"max_length": 20, "sample": False, "top_p": 1.0}}
    yield case("gpt-searches", "language_model", GPT, task=beams, searches=MANY_SEARCHES, also=("searched",))
    yield case("gpt-drawn", "language_model", GPT, searches=DRAWN, also=("followed",))
    spoken = recipe("language_model", GPT, {}, run="before")
    begins: Recipe = {"kind": "gpt", "init_from": "before"}
    yield case("gpt-begun", "language_model", begins, task=OWN, before=(spoken,))
    yield case("gpt-begun", "dialogue", begins, task=OWN, before=(spoken,))
    theirs: Recipe = {"kind": "gpt", "init_from": "gpt2", "dropout": 0.2}
    yield case("gpt2", "language_model", theirs, task=OWN, folders=("gpt2",), also=("imported",))


TO_ONNX = ("classify-words", "multilabel-rnn", "tag-transformer", "relation-bert", "answer-bert")


def encoders() -> Iterator[Case]:
    """Every encoder under every head that can have it."""
    heads = {
        "classify": "classifier",
        "classify_pair": "classifier",
        "multilabel": "classifier",
        "tag": "tagger",
        "relation": "relater",
        "answer": "answerer",
    }
    smoke = {one.name for one in SMOKE}
    for task, head in heads.items():
        for kind in ENCODERS:
            name = f"{kind}-crf" if head == "tagger" else kind
            if f"{task}-{name}" not in smoke:
                also = ("embedded",) if task == "classify" else ()
                exported = ("to_onnx",) if f"{task}-{kind}" in TO_ONNX else ()
                yield case(name, task, encoding(head, kind), also=also + exported)
    of_rnn: dict[str, Recipe] = {
        "gru": {"cell": "gru", "word_dropout": 0.2},
        "plain": {"cell": "rnn", "bidirectional": False},
        "layers": {"n_layers": 2, "cell": "lstm"},
    }
    for name, changes in of_rnn.items():
        yield case(f"rnn-{name}", "classify", encoding("classifier", "rnn", changes))
        yield case(f"rnn-{name}-crf", "tag", encoding("tagger", "rnn", changes))
    of_layers: dict[str, Recipe] = {
        "rotary-pre": {"position": "rotary", "norm": "pre", "activation": "swiglu"},
        "relative": {"position": "relative"},
        "alibi-dropouts": {"position": "alibi", "word_dropout": 0.2, "attention_dropout": 0.1},
        "learned": {"position": "learned", "n_kv_heads": 1},
    }
    for name, changes in of_layers.items():
        yield case(f"transformer-{name}", "classify", encoding("classifier", "transformer", changes))
    for pooling in ("first", "pooler", "mean"):
        for kind in ("transformer", "bert", "words"):
            yield case(f"{kind}-{pooling}", "classify", encoding("classifier", kind, pooling=pooling))
        yield case(f"bert-{pooling}", "relation", encoding("relater", "bert", pooling=pooling))
    yield case("rnn-no-entities", "relation", encoding("relater", "rnn", entities=False))


def labels() -> Iterator[Case]:
    """What else tasks with labels have."""
    classifier = encoding("classifier", "rnn")
    balanced: Recipe = {"class_weights": "balanced", "label_smoothing": 0.1}
    for task in ("classify", "classify_pair", "multilabel"):
        yield case("balanced", task, classifier, task=balanced)
        yield case("held-out", task, classifier, data={"valid": None}, task={"max_length": 8})
    weights = {"class_weights": {"tree": 2.0, "place": 0.5}}
    yield case("weights", "classify", classifier, task=weights, also=("served",))
    often = {"more often": {"threshold": 0.05}}
    yield case("weights", "multilabel", classifier, task=weights | {"threshold": 0.2}, searches=often)
    yield case("balanced", "relation", encoding("relater", "rnn"), task=balanced)
    tagger = recipe("tag", {"kind": "hmm"}, {}, run="before")
    both = encoding("relater", "transformer")
    ways = {"both_ways": True, "max_length": 8}
    yield case("tagged", "relation", both, before=(tagger,), also=("related",), task=ways)
    yield case("held-out", "relation", both, data={"valid": None})
    for kind in ENCODERS:
        yield case(f"{kind}-softmax", "tag", encoding("tagger", kind, crf=False))
    yield case("hmm", "tag", {"kind": "hmm"}, also=("served",))
    yield case("hmm-smoothed", "tag", {"kind": "hmm", "smoothing": 0.5}, data={"valid": None})
    yield case(
        "hmm-far-apart", "tag", {"kind": "hmm", "smoothing": 1e-12}, searches={"spaces": {"split": "spaces"}}
    )
    yield case("held-out", "tag", encoding("tagger", "transformer"), data={"valid": None})
    signs = {"tokenizer": {"kind": "char", "vocab_size": 60, "min_frequency": 1}}
    yield case("by-sign", "tag", encoding("tagger", "rnn"), corpus="tagged_by_sign", task=signs)
    for illegal in ("mend", "skip"):
        loosely = {"illegal": illegal, "split": "spaces"}
        yield case(illegal, "tag", encoding("tagger", "rnn"), corpus="tagged_loosely", task=loosely)
    pieces = {"tokenizer": {"kind": "wordpiece", "vocab_size": 60, "min_frequency": 1}}
    yield case("pieces", "tag", encoding("tagger", "transformer"), task=pieces)
    yield case("held-out", "answer", encoding("answerer", "transformer"), data={"valid": None})
    windows = {"max_length": 14, "overlap": 4, "max_question": 6, "max_answer": 2} | pieces
    yield case("windows", "answer", encoding("answerer", "bert"), task=windows)


def beginnings() -> Iterator[Case]:
    """Encoders that begin as others: all of them, a part of them, or small changes of them."""
    before = (PRETRAINED,)
    heads = {
        "classify": "classifier",
        "classify_pair": "classifier",
        "multilabel": "classifier",
        "tag": "tagger",
        "relation": "relater",
        "answer": "answerer",
    }
    for task, head in heads.items():
        yield case("begun", task, begun(head, "before"), task=OWN, before=before)
        theirs = begun(head, "bert", **({"pooling": "pooler"} if head == "classifier" else {}))
        exported = ("to_hf",) if task in ("classify", "answer") else ()
        yield case("hf", task, theirs, task=OWN, folders=("bert",), also=exported)
    yield case(
        "hf-head",
        "classify",
        begun("classifier", "bert-classifier", pooling="pooler"),
        task=OWN,
        folders=("bert-classifier",),
        also=("imported", "embedded"),
    )
    yield case(
        "hf-softmax", "tag", begun("tagger", "bert", crf=False), task=OWN, folders=("bert",), also=("to_hf",)
    )
    parts: dict[str, Recipe] = {
        "freeze-0": {"freeze": 0},
        "freeze-1": {"freeze": 1},
        "lora": {"lora": 4},
        "lora-freeze": {"lora": 2, "freeze": 1},
    }
    for name, changes in parts.items():
        also = ("resumed",) if name == "lora-freeze" else ()
        model = begun("classifier", "before", pooling="pooler", **changes)
        yield case(name, "classify", model, task=OWN, before=before, also=also)
    for head, task in (("tagger", "tag"), ("answerer", "answer"), ("relater", "relation")):
        yield case("lora", task, begun(head, "before", lora=4), task=OWN, before=before)
    decay = {"layer_decay": 0.7, "optimizer": "adamw", "weight_decay": 0.05}
    yield case("layer-decay", "classify", begun("classifier", "before"), task=OWN, before=before, train=decay)
    yield case("layer-decay", "tag", encoding("tagger", "transformer"), train=decay)
    for kind in ("rnn", "transformer", "words"):
        first = recipe("classify", encoding("classifier", kind), {}, run="before")
        yield case(f"begun-{kind}", "multilabel", begun("classifier", "before"), task=OWN, before=(first,))
    frozen = encoding("classifier", "rnn", freeze=0)
    yield case("frozen-rnn", "classify", frozen)
    first = recipe("classify", encoding("classifier", "transformer"), {}, run="before")
    yield case(
        "lora-transformer", "classify", begun("classifier", "before", lora=3), task=OWN, before=(first,)
    )


def pretrainings() -> Iterator[Case]:
    """BERTs that learn to fill blanks."""
    yield case("bert", "pretrain", BERT, also=("resumed", "embedded"))
    yield case("counted", "pretrain", BERT | {"embeddings": "counted"})
    yield case("held-out", "pretrain", BERT, data={"valid": None}, also=("to_hf",))
    words = {"whole_words": True, "mask_share": 0.3, "sentences": "marks"}
    yield case("whole-words", "pretrain", BERT, task=words)
    cased = {"max_length": 20, "tokenizer": {"vocab_size": 150, "min_frequency": 1, "lowercase": False}}
    yield case("short", "pretrain", BERT, task=cased)
    yield case(
        "begun",
        "pretrain",
        {"kind": "bert_pretraining", "init_from": "before"},
        task=OWN,
        before=(PRETRAINED,),
    )
    theirs: Recipe = {"kind": "bert_pretraining", "init_from": "bert"}
    yield case("hf", "pretrain", theirs, task=OWN, folders=("bert",), also=("imported",))
    yield case("lora", "pretrain", theirs | {"lora": 3}, task=OWN, folders=("bert",))


def readings() -> Iterator[Case]:
    """Files of every format, and what is proposed for them."""
    rnn = encoding("classifier", "rnn")
    tagger = encoding("tagger", "rnn")
    others: dict[str, tuple[str, Recipe, Recipe]] = {
        "pairs-aligned": ("translate", TRANSFORMER, {}),
        "characters-gb18030": ("translate", TRANSFORMER, {"encoding": "gb18030"}),
        "labelled-shards": ("classify", rnn, {"valid": None}),
        "labelled-parquet": ("classify", rnn, {}),
        "related-semeval": ("relation", encoding("relater", "rnn"), {}),
        "tagged-conllu": ("tag", tagger, {}),
        "tagged-lists": ("tag", tagger, {"valid": None}),
        "multilabelled-lists": ("multilabel", rnn, {}),
        "conversations-csv": ("dialogue", TRANSFORMER, {}),
        "questions-csv": ("answer", encoding("answerer", "rnn"), {}),
        "stories-jsonl": ("language_model", GPT, {"valid": None}),
    }
    for corpus, (task, model, data) in others.items():
        yield case(f"of-{corpus}", task, model, corpus=corpus, data=data)
        if not data.get("encoding"):
            drafted = recipe(task, model, {}, corpus=corpus)
            yield Case(name=f"draft-{corpus}", old=drafted, drafts=True)
    for task, corpus in CORPUS.items():
        if task != "pretrain":
            yield Case(name=f"draft-{corpus}", old=recipe(task, TRANSFORMER, {}), drafts=True)
    yield case("of-stories-jsonl", "pretrain", BERT, corpus="stories-jsonl", task={"sentences": "marks"})


GROUPS = (transformers, trainings, recurrent, writers, encoders, labels, beginnings, pretrainings, readings)
CASES = {one.name: one for one in (*SMOKE, *(one for group in GROUPS for one in group()))}


def chosen(wanted: str) -> list[Case]:
    """The cases of "smoke", "all", or names with commas between, which may be patterns: tag-*."""
    found: dict[str, Case] = {}
    for pattern in wanted.split(","):
        names = [one.name for one in SMOKE] if pattern == "smoke" else fnmatch.filter(CASES, pattern)
        names = list(CASES) if pattern == "all" else names
        if not names:
            raise SystemExit(f"no case is called {pattern!r}; there are: {', '.join(CASES)}")
        found |= {name: CASES[name] for name in names}
    return list(found.values())

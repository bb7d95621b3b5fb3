"""The cases of `make same-as`: recipes that between them take every numeric path that a recipe can take.

A case says what the old side is told; the new side is told the same, with the changes of `RENAMED` (which
apply to all cases) and those of the case itself. When a setting gets another name, one line in `RENAMED`
translates it everywhere; when it gets other values, `new` of the cases that set it does.
"""

import sys
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent / "workers"))

import same_data

Recipe = dict[str, Any]
STEPS = 30
HALFWAY = 15
RENAMED: tuple[Callable[[Recipe], None], ...] = ()
"""Each changes a recipe of the old side in place, so that it says the same to the new side."""
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
COLUMNS = {"pairs": {"source": 1, "target": 2}, "related": {"label": 1, "text": 2}}
COLUMNS["characters"] = COLUMNS["pairs"]
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
    searches: dict[str, Recipe] = field(default_factory=dict)
    asked: list[Any] = field(default_factory=list)
    explained: list[Any] = field(default_factory=list)
    before: tuple[Recipe, ...] = ()
    """Trained first, to begin with or to answer beside."""
    folders: tuple[str, ...] = ()
    """Of Hugging Face, made first: names in same_data.FOLDERS."""
    stop_at: int = 0
    """Train once more, stopped after this step and resumed."""

    def job(self, side: str) -> dict[str, Any]:
        """What the worker is told."""
        return {
            "name": self.name,
            "recipe": self._told(side, self.old),
            "before": [self._told(side, recipe) for recipe in self.before],
            "searches": self.searches,
            "asked": self.asked,
            "explained": self.explained,
            "evaluated": [[self.old["data"]["test"]], self.old["data"].get("columns")],
            "folders": self.folders,
            "stop_at": self.stop_at,
        }

    def _told(self, side: str, recipe: Recipe) -> Recipe:
        told = deepcopy(recipe)
        if side == "new":
            for rename in (*RENAMED, *([self.new] if self.new else [])):
                rename(told)
        return told


def recipe(
    task: str, model: Recipe, parts: dict[str, Recipe], *, corpus: str = "", run: str = "run"
) -> Recipe:
    """Of a task on its corpus; `parts` are changes of its tables."""
    corpus = corpus or CORPUS[task]
    data: Recipe = {split: same_data.file(corpus, split) for split in same_data.SIZES}
    if corpus in COLUMNS:
        data["columns"] = COLUMNS[corpus]
    told: Recipe = {
        "run": run,
        "seed": 3,
        "task": {"kind": task} | TASKS[task] | parts.get("task", {}),
        "data": {name: value for name, value in (data | parts.get("data", {})).items() if value},
        "model": model | parts.get("model", {}),
        "train": TRAIN | parts.get("train", {}),
    }
    return told


def case(
    name: str,
    task: str,
    model: Recipe,
    *,
    corpus: str = "",
    searches: dict[str, Recipe] | None = None,
    before: tuple[Recipe, ...] = (),
    folders: tuple[str, ...] = (),
    stop_at: int = 0,
    **parts: Recipe,
) -> Case:
    """A case of a task on its corpus, asked what the corpus asks."""
    asked = same_data.asked_with_blanks() if task == "pretrain" else same_data.asked(corpus or CORPUS[task])
    default = SEARCHES if task in SEARCHING else {}
    return Case(
        name=name,
        old=recipe(task, model, parts, corpus=corpus),
        searches=default if searches is None else searches,
        asked=asked,
        explained=asked[2:4],
        before=before,
        folders=folders,
        stop_at=stop_at,
    )


def encoding(kind: str, encoder: str, **changes: Any) -> Recipe:
    """A model with an encoder under its head."""
    return {"kind": kind, "encoder": ENCODERS[encoder], "dropout": 0.2} | changes


SMOKE = (
    case("classify-transformer", "classify", encoding("classifier", "transformer")),
    case("translate-transformer", "translate", TRANSFORMER, stop_at=HALFWAY),
    case("tag-rnn-crf", "tag", encoding("tagger", "rnn"), stop_at=HALFWAY),
    case("answer-rnn", "answer", encoding("answerer", "rnn")),
    case("language_model-gpt", "language_model", GPT),
)
CASES: dict[str, Case] = {one.name: one for one in SMOKE}


def chosen(wanted: str) -> list[Case]:
    """The cases of "smoke", "all", or names with commas between; a name may end with *."""
    if wanted == "smoke":
        return list(SMOKE)
    if wanted == "all":
        return list(CASES.values())
    found: dict[str, Case] = {}
    for name in wanted.split(","):
        own = {
            case.name: case
            for case in CASES.values()
            if case.name == name or (name.endswith("*") and case.name.startswith(name[:-1]))
        }
        if not own:
            raise SystemExit(f"no case is called {name!r}; there are: {', '.join(CASES)}")
        found |= own
    return list(found.values())

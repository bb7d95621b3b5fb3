"""pretrain: documents, a sentence a line or as they are written, to learn a language from before a task."""

from collections.abc import Mapping, Sequence
from itertools import islice
from statistics import fmean
from typing import Any

from regard.check.finding import Finding, about
from regard.check.rows import Splits, duplicated, empty, shared
from regard.data.splits import closes
from regard.errors import DataError
from regard.files.columns import Column
from regard.files.documents import By
from regard.files.formats import file_format
from regard.files.lines import expand, lines
from regard.files.row import Row
from regard.init.columns import Picked, Table, longest_text
from regard.init.guess import Guess
from regard.init.match import NOT, Fit
from regard.init.plan import Plan
from regard.init.settings import Pace, Setting
from regard.tasks.task_data import TaskData
from regard.text.sentences import Sentences, sentences

LOOKED_AT = 2000
"""Lines of the first file that say how documents are written."""
SIZES = {
    "tiny": "2 layers, width 128",
    "mini": "4 layers, width 256",
    "small": "4 layers, width 512",
    "medium": "8 layers, width 512",
    "base": "BERT's: 12 layers, width 768",
}
END_MARKS = (".", "!", "?", "。", "！", "？", '."', '!"', '?"', "。”", "！”", "？”")


def _pick(role: str, rest: Table) -> Picked:
    return longest_text(rest.texts)


def _fit(table: Table, roles: Mapping[str, Column | None]) -> Fit:
    """Text alone is continued, unless pretraining is asked for."""
    return NOT


def _layout(guess: Guess) -> tuple[By, Sentences]:
    """Guess what a document is, and where its sentences end, from the first lines."""
    if file_format(guess.train[0]) != "text":
        return "paragraphs", "marks"
    try:
        seen = list(islice(lines(expand(guess.train[0])[0], encoding=guess.encoding), LOOKED_AT))
    except DataError:  # check will tell
        return "paragraphs", "lines"
    said = [line.strip() for line in seen if line.strip()]
    if not said:
        return "paragraphs", "lines"
    ended = fmean(line.endswith(END_MARKS) for line in said)
    several = fmean(len(sentences(line, "marks")) > 1 for line in said)
    by: Sentences = "lines" if several < 0.5 and (ended > 0.5 or several == 0) else "marks"
    if len(said) < len(seen):
        return "paragraphs", by
    return ("lines", "marks") if several >= 0.5 else ("files", by)


def _preset(plan: Plan) -> str:
    n = plan.guess.n_characters
    if n < 20_000_000 or not plan.machine.gpu:
        return "tiny" if n < 5_000_000 else "mini"
    return "small" if n < 500_000_000 else "base"


def _sections(plan: Plan) -> Mapping[str, list[Setting]]:
    documents, by = _layout(plan.guess)
    preset = _preset(plan)
    return {
        "task": [
            Setting("kind", "pretrain"),
            Setting("documents", documents, f"by the look of the first {LOOKED_AT:,} lines"),
            Setting("sentences", by, f"by the look of the first {LOOKED_AT:,} lines"),
            Setting("max_length", 125),
        ],
        "task.tokenizer": [
            Setting("vocab_size", max(4_000, plan.vocab_size), f"tokens at most, for {plan.guess.amount}"),
            Setting("lowercase", True, "A and a are one: fewer words to learn"),
        ],
        "model": [
            Setting("kind", "bert_pretraining"),
            Setting("embeddings", "counted"),
        ],
        "model.encoder": [
            Setting("kind", "bert"),
            Setting("preset", preset, f"{SIZES[preset]}, for {plan.guess.n_characters:,} characters"),
        ],
    }


def _pace(plan: Plan) -> Pace:
    epochs = max(5, min(100, round(100_000_000 / max(1, plan.guess.n_characters))))
    return Pace(epochs=epochs, warmup=100, lr=3e-3, patience=10, average=1, optimizer="muon")


def _examine(splits: Splits, config: Any) -> list[Finding]:
    return [
        *_unpaired(splits["train"], config),
        *empty(splits, ["text"]),
        *duplicated(splits["train"]),
        *shared(splits, "text"),
    ]


def _unpaired(train: Sequence[Row], config: Any) -> list[Finding]:
    """Documents that have no next sentence, and data that have no other document.

    Whether some of one sentence are long enough to become several, only the vocabulary tells.
    """
    alone, n_documents, n_sentences, first = [], 0, 0, None
    for row in train:
        first = first or row
        n_sentences += len(sentences(row.cells["text"], config.sentences))
        if closes(row):
            n_documents += 1
            alone += [first] if n_sentences == 1 else []
            n_sentences, first = 0, None
    if n_documents < 2:
        told = "train: one document only, so that no sentence can come from another; separate documents"
        return [Finding("error", "one-document", f"{told} by blank lines, or change task.documents")]
    remark = "with a document of one sentence: words are hidden in it, but nothing follows"
    remedy = '; try task.sentences = "marks"' if config.sentences == "lines" else ""
    return about("warning", "one-sentence", "train", alone, remark + remedy)


PRETRAIN = TaskData(
    roles=("text",),
    texts=("text",),
    pick=_pick,
    fit=_fit,
    sections=_sections,
    pace=_pace,
    examine=_examine,
    too_long=None,
    held_out="every 20th document is held out, or the last tenth of a file that is one",
)

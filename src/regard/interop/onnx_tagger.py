"""A tagger as a graph for onnxruntime: scores of all tags at every piece; tags.json says the rest.

A word is its first piece. With a CRF, tags.json has what beginning, steps and ending score, so that whoever
runs the graph finds the best tags with a few lines of numpy (examples/onnx_tag.py).
"""

import json
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from regard.interop.graphs import exportable
from regard.interop.onnx import Reader, write_reader
from regard.interop.parity import Floats, Ints
from regard.interop.tagging import Chain, There
from regard.interop.tokens import open_tokenizers, write_tokenizer
from regard.models import Tagger
from regard.runs.store import write_json
from regard.tasks import Tag
from regard.text.tokenizer import Marks

TAGS = "tags.json"


class _Scores(nn.Module):
    """tokens_RT, lengths_R → scores_RTC."""

    def __init__(self, model: Tagger) -> None:
        super().__init__()
        self.encoder, self.output = model.encoder, model.output

    def forward(self, tokens_RT: Tensor, lengths_R: Tensor) -> Tensor:
        scores_RTC: Tensor = self.output(self.encoder(tokens_RT, lengths_R))
        return scores_RTC


def write(task: Tag, model: Tagger, folder: Path) -> None:
    write_reader(folder, exportable(_Scores(model)), ["scores"])
    write_tokenizer(task.tokenizer, folder, None)
    marks = task.tokenizer.marks
    told = {
        "tags": list(task.names),
        "split": task.split,
        "before": list(marks.begin),
        "after": marks.end,
        "unknown": marks.unknown,
        "most": task.config.max_length,
        "crf": _crf(model),
    }
    write_json(folder / TAGS, told)
    (folder / "README.md").write_text(CARD, "utf-8")


def _crf(model: Tagger) -> dict[str, Any] | None:
    """−∞ is written as null."""
    if model.crf is None:
        return None
    weights = (weight.detach().cpu().float().tolist() for weight in model.crf.weights())
    return dict(zip(("begin", "step", "end"), weights, strict=True))


def there(task: Tag, folder: Path) -> There:
    """The folder as onnxruntime and tokenizers load it."""
    reader, (tokenizer, _) = Reader(folder), open_tokenizers(folder)
    told = json.loads((folder / TAGS).read_text("utf-8"))

    def pieces(words: list[str]) -> list[list[int]]:
        return [found.ids for found in tokenizer.encode_batch(words, add_special_tokens=False)]

    def read(tokens_RT: Ints, lengths_R: Ints) -> Floats:
        return reader(tokens_RT, lengths_R)[0]

    marks = Marks(tuple(told["before"]), told["after"], told["unknown"], frozenset())
    chain = Chain.of(told["crf"])
    return There(reader.name, told["tags"], chain, marks, told["most"], task.words, pieces, read)


CARD = """# A tagger for ONNX Runtime, trained and exported with regard

model.onnx takes `tokens` (batch × length, padded with 0) and `lengths` and gives `scores` (batch × length ×
tags), in the order of `tags` in tags.json. tokenizer.json makes tokens of each word by itself, with
`encode(word, add_special_tokens=False)`; one that it makes nothing of is `unknown`. `before` stands before
the sentence, `after` after it. The scores of a word are those of its first piece.

Where `crf` is null, the tag with the largest score is the word's. Else the best tags of a sentence are those
whose scores, `begin` of the first, `step` from each to the next and `end` of the last have the largest sum;
null is −∞, which forbids.

The model was made for sentences of up to `most` pieces, and words of up to half as many; regard reads longer
sentences in overlapping windows. It makes words of a text by `split`: characters; words with every sign by
itself (signs); or what stands between spaces.
"""

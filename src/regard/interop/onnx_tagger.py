"""Export of a tagger as a graph for onnxruntime: scores of all tags at every token; tags.json has the rest.

A word's scores are those of its first token. With a CRF, tags.json has the scores of first tags, transitions
and last tags, so that a few lines of numpy find the best tags (examples/onnx_tag.py).
"""

import json
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from regard.interop.graphs import exportable
from regard.interop.onnx import Reader, TokenReader, write_reader
from regard.interop.parity import Floats, Ints
from regard.interop.tag_parity import CRFScores, ExportedTagEngine, exported_windows
from regard.interop.tokens import open_tokenizers, write_tokenizer
from regard.layers.inputs import Inputs
from regard.models import Tagger
from regard.runs.store import write_json
from regard.tasks import Tag
from regard.text.tokenizer import SpecialTokens

TAGS = "tags.json"


class _Scores(nn.Module):
    """Scores of the tags at every token, scores_RTC."""

    def __init__(self, model: Tagger) -> None:
        super().__init__()
        self.encoder, self.output = model.encoder, model.output

    def forward(self, inputs: Inputs) -> Tensor:
        scores_RTC: Tensor = self.output(self.encoder(inputs).states_RTD)
        return scores_RTC


def write(task: Tag, model: Tagger, folder: Path) -> None:
    write_reader(folder, TokenReader(exportable(_Scores(model))), ["scores"])
    write_tokenizer(task.tokenizer, folder, None)
    special = task.tokenizer.special
    settings = {
        "tags": list(task.labels),
        "split": task.words.split,
        "before": list(special.begin),
        "after": special.end,
        "unknown": special.unknown,
        "most": task.config.max_length,
        "crf": _crf(model),
    }
    write_json(folder / TAGS, settings)
    (folder / "README.md").write_text(CARD, "utf-8")


def _crf(model: Tagger) -> dict[str, Any] | None:
    """Scores of the CRF; −∞ is written as null."""
    if model.crf is None:
        return None
    weights = (weight.detach().cpu().float().tolist() for weight in model.crf.weights())
    return dict(zip(("begin", "step", "end"), weights, strict=True))


def load_engine(task: Tag, folder: Path) -> ExportedTagEngine:
    """Load the folder with onnxruntime and tokenizers."""
    reader, (tokenizer, _) = Reader(folder), open_tokenizers(folder)
    settings = json.loads((folder / TAGS).read_text("utf-8"))

    def word_ids(words: list[str]) -> list[list[int]]:
        return [encoding.ids for encoding in tokenizer.encode_batch(words, add_special_tokens=False)]

    def read(tokens_RT: Ints, lengths_R: Ints) -> Floats:
        return reader(tokens_RT, lengths_R)[0]

    special = SpecialTokens(tuple(settings["before"]), settings["after"], settings["unknown"], frozenset())
    windows, crf = exported_windows(tokenizer, special, settings["most"]), CRFScores.of(settings["crf"])
    return ExportedTagEngine(reader.name, settings["tags"], crf, windows, task.words, word_ids, read)


CARD = """# A tagger for ONNX Runtime, trained and exported with regard

model.onnx takes `tokens` (batch × length, padded with 0) and `lengths` and returns `scores` (batch × length ×
tags), in the order of `tags` in tags.json. Tokenize each word separately with tokenizer.json and
`encode(word, add_special_tokens=False)`; a word without tokens becomes `unknown`. Put `before` in front of
the sentence and `after` at its end. The scores of a word are those of its first token.

If `crf` is null, each word gets the tag with its largest score. Otherwise the best tag sequence is the one
with the largest sum of the words' scores, `begin` of the first tag, `step` from each tag to the next and
`end` of the last tag; null is −∞, which forbids.

The model expects sentences of up to `most` tokens, and words of up to half as many; regard reads longer
sentences in overlapping windows. `split` says how it splits a text into words: into characters; into words
and punctuation (signs); or at spaces.
"""

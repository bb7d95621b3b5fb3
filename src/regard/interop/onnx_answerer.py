"""Export of an answerer as a graph for onnxruntime: a start and an end score per token.

Making windows of a long context and finding the best span are left to the caller; regard.json has the
settings.
"""

import json
from pathlib import Path

import torch
from torch import Tensor, nn

from regard.interop.answer_parity import AnswerEngine, rebuild_task, window_settings
from regard.interop.graphs import exportable
from regard.interop.onnx import SETTINGS, Reader, TokenReader, write_reader
from regard.interop.tokens import open_tokenizers, write_tokenizer
from regard.layers.inputs import Inputs
from regard.models import Answerer
from regard.runs.store import write_json
from regard.tasks import Answer


def write(task: Answer, model: Answerer, folder: Path) -> None:
    write_reader(folder, TokenReader(exportable(model)), ["start", "end"], pairs=True)
    write_tokenizer(task.tokenizer, folder, None)
    write_json(folder / SETTINGS, window_settings(task))
    (folder / "README.md").write_text(CARD, "utf-8")


def load_engine(folder: Path) -> AnswerEngine:
    """Load the folder with onnxruntime and tokenizers."""
    reader, (tokenizer, _) = Reader(folder), open_tokenizers(folder)
    settings = json.loads((folder / SETTINGS).read_text("utf-8"))
    return AnswerEngine(reader.name, rebuild_task(settings, tokenizer), _ONNXAnswerer(reader))


class _ONNXAnswerer(nn.Module):
    """The graph with the signature of our Answerer."""

    def __init__(self, reader: Reader) -> None:
        super().__init__()
        self.reader = reader

    def forward(self, inputs: Inputs) -> tuple[Tensor, Tensor]:
        arrays = (inputs[name].numpy() for name in ("ids", "lengths", "segments"))
        start_RT, end_RT = map(torch.from_numpy, self.reader(*arrays))
        return start_RT, end_RT


CARD = """# An answerer for ONNX Runtime, trained and exported with regard

model.onnx takes `tokens` (batch × length, padded with 0), `lengths` and `segments` (0 up to the special token
after the question, then 1) and returns `start` and `end` (batch × length): scores of an answer that starts or
ends at each token. Tokenize question and context separately with tokenizer.json and
`encode(text, add_special_tokens=False)`, then join `before`, question, `after`, context, `after`; regard.json
has the ids.

Only the first `max_question` tokens of a question are read. Question, special token and context may have
`max_length` tokens; a longer context is split into windows, each of which shares `overlap` tokens with the
one before. The answer is the span of at most `max_answer` tokens of the context with the largest sum of
`start` and `end`. If `may_be_none` is true and that sum is smaller than the one of the first position of
every window, there is no answer. The characters of a token are in `offsets`.
"""

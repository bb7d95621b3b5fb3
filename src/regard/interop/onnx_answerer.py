"""An answerer as a graph for onnxruntime: at every piece a score to begin and one to end.

Windows of a long context, and the best span over them, are for whoever runs it; regard.json has the settings.
"""

import json
from pathlib import Path

import torch
from torch import Tensor, nn

from regard.interop.answering import Side, reading, settings
from regard.interop.graphs import exportable
from regard.interop.onnx import SETTINGS, Reader, write_reader
from regard.interop.tokens import open_tokenizers, write_tokenizer
from regard.models import Answerer
from regard.runs.store import write_json
from regard.tasks import Answer


def write(task: Answer, model: Answerer, folder: Path) -> None:
    write_reader(folder, exportable(model), ["start", "end"], pairs=True)
    write_tokenizer(task.tokenizer, folder, None)
    write_json(folder / SETTINGS, settings(task))
    (folder / "README.md").write_text(CARD, "utf-8")


def there(folder: Path) -> Side:
    """The folder as onnxruntime and tokenizers load it."""
    reader, (tokenizer, _) = Reader(folder), open_tokenizers(folder)
    told = json.loads((folder / SETTINGS).read_text("utf-8"))
    return Side(reader.name, reading(told, tokenizer), _Graph(reader))


class _Graph(nn.Module):
    def __init__(self, reader: Reader) -> None:
        super().__init__()
        self.reader = reader

    def forward(self, *given: Tensor) -> tuple[Tensor, Tensor]:
        start_RT, end_RT = map(torch.from_numpy, self.reader(*(part.numpy() for part in given)))
        return start_RT, end_RT


CARD = """# An answerer for ONNX Runtime, trained and exported with regard

model.onnx takes `tokens` (batch × length, padded with 0), `lengths` and `segments` (0 up to the mark after
the question, then 1) and gives `start` and `end` (batch × length): how well an answer begins and ends at each
piece. tokenizer.json makes tokens of question and context apart, with
`encode(text, add_special_tokens=False)`. Together they are `before`, question, `after`, context, `after`;
regard.json has the numbers.

Of a question the first `max_question` pieces are read. Question, the mark after it and context may have
`max_length` pieces; a longer context is read in windows, each of which shares `overlap` pieces with the one
before. The answer is the span of at most `max_answer` pieces of the context with the largest sum of `start`
and `end`. Where `may_be_none` is true there is none if that sum is smaller than the one of the first place of
every window. The characters of a piece are in `offsets`.
"""

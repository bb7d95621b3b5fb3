"""Source and target as one text: a GPT reads the source, with an end mark, and goes on with the target.

It predicts the target alone. The mark that begins a target is not needed, as the end of the source
says the same.
"""

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from regard.layers import heads
from regard.models.gpt import GPT, GPTState
from regard.tasks.seq2seq import Seq2SeqBatch
from regard.text.tokenizer import PAD


def reach(max_length: int) -> int:
    """Tokens of a source with its end and of its target together, at most."""
    return 2 * max_length + 1


def forward(model: GPT, batch: Seq2SeqBatch, keep_BT: Tensor | None, head: heads.Head) -> Tensor:
    """The `head` of the states that predict the target, or of those that are kept."""
    tokens_BT = joined(batch)
    n_rows, length = tokens_BT.shape
    row_B1 = torch.arange(n_rows, device=tokens_BT.device)[:, None] * length
    target_T = torch.arange(batch.target_BT.shape[1], device=tokens_BT.device)
    place_BT = row_B1 + (batch.inputs["lengths"][:, None] - 1 + target_T).clamp(max=length - 1)
    place_N = place_BT.flatten() if keep_BT is None else place_BT[keep_BT]
    output: Tensor = model(tokens_BT, None, lambda out: head(out.at(place_N)))
    return output


def joined(batch: Seq2SeqBatch) -> Tensor:
    """Every source followed by what is read of its target."""
    n_read = (batch.keep_BT.sum(dim=1)).tolist()
    n_source = batch.inputs["lengths"].tolist()
    rows = zip(batch.inputs["ids"], n_source, batch.target_BT, n_read, strict=True)
    texts = [torch.cat([source[:n], target[1:most]]) for source, n, target, most in rows]
    return pad_sequence(texts, batch_first=True, padding_value=PAD)


def start(model: GPT, batch: Seq2SeqBatch, max_length: int) -> GPTState:
    """The state before the first token of the target; the first step reads the end of the source."""
    return model.start(batch.inputs["ids"], batch.inputs["lengths"], reach(max_length))

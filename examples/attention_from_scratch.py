"""Attention by its definition, then by `regard.attention`, then inside a model of your own.

python examples/attention_from_scratch.py [STEPS]
"""

# %% By definition: three loops
import math
import sys
from collections import Counter

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention import Additive, Attention, Trace, attend, causal, padding, tapped
from regard.files.read import read_rows

torch.manual_seed(0)
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 300


def by_loops(q_QE: Tensor, k_KE: Tensor, v_KW: Tensor) -> Tensor:
    """Each query scores every key, the scores become weights, the weights average the values; no future."""
    outputs = []
    for i, query in enumerate(q_QE):
        scores = [math.exp(float(query @ key) / math.sqrt(len(query))) for key in k_KE[: i + 1]]
        weights = [score / sum(scores) for score in scores]
        outputs.append(torch.stack([w * value for w, value in zip(weights, v_KW, strict=False)]).sum(0))
    return torch.stack(outputs)


# %% By regard: one call, fused, and the same numbers
q, k, v = torch.randn(3, 6, 8)
fused = attend(q[None, None], k[None, None], v[None, None], mask=causal())[0, 0]
print("largest difference:", float((by_loops(q, k, v) - fused).abs().max()))

# %% In a model of your own: words, one attention that pools them, one map to two classes
roles = {"text": 2, "label": 1}
reviews = [row.cells for row in read_rows(["regard:mr_sentence_polarity/train.tsv.gz"], roles)]
counts = Counter(word for review in reviews for word in review["text"].split())
ids = {word: number for number, (word, _) in enumerate(counts.most_common(5000), 1)}


class Pooled(nn.Module):
    """softmax(vᵀ tanh(W h + q)) over the words; an Attention is a site, so it can be tapped."""

    def __init__(self, d: int = 64) -> None:
        super().__init__()
        self.embed = nn.Embedding(len(ids) + 1, d)
        self.query = nn.Parameter(torch.zeros(1, 1, d))
        self.attention = Attention(d, project="k", score=Additive(d))
        self.classes = nn.Linear(d, 2)

    def forward(self, words_BT: Tensor, lengths_B: Tensor) -> Tensor:
        memory = self.attention.project_kv(self.embed(words_BT))
        query_B1D = self.query.expand(len(words_BT), -1, -1)
        pooled_BD = self.attention(query_B1D, memory, mask=padding(lengths_B))[:, 0]
        logits_BC: Tensor = self.classes(pooled_BD)
        return logits_BC


def collate(texts: list[str]) -> tuple[Tensor, Tensor]:
    rows = [[ids.get(word, 0) for word in text.split()] for text in texts]
    words_BT = torch.zeros(len(rows), max(map(len, rows)), dtype=torch.long)
    for row, numbers in enumerate(rows):
        words_BT[row, : len(numbers)] = torch.tensor(numbers)
    return words_BT, torch.tensor([len(row) for row in rows])


# %% Train it
model = Pooled()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(1, steps + 1):
    batch = [reviews[i] for i in torch.randint(len(reviews), (64,)).tolist()]
    labels = torch.tensor([int(review["label"]) for review in batch])
    loss = F.cross_entropy(model(*collate([review["text"] for review in batch])), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0 or step == steps:
        print(f"step {step}: loss {loss.item():.3f}")

# %% Look inside
text = "a moving story , beautifully told , with one dull scene near the end ."
trace = Trace()
with torch.no_grad(), tapped(model, lambda site: trace):
    positive = float(model(*collate([text])).softmax(-1)[0, 1])
print(f"positive: {positive:.2f}")
for word, weight in zip(text.split(), trace.weights_BHQK[0, 0, 0].tolist(), strict=True):
    print(f"{weight:.2f} {'█' * round(40 * weight)} {word}")

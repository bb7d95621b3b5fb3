"""Train a small Chinese → English translator on shipped sentences, and look at what it attends to.

    python examples/train_translator.py [STEPS]

With the default 300 steps it takes under a minute, and its translations are still wrong: the point is the
way, not the score. `regard demo` does the same with all sentences.
"""

# %% Which sentences
import gzip
import sys
import tempfile
from pathlib import Path

import regard
from regard.files.read import read_rows

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 300
folder = Path(tempfile.mkdtemp(prefix="regard-"))
roles = {"source": 2, "target": 1}

for split, n_rows in (("train", 4000), ("valid", 100), ("test", 100)):
    rows = read_rows([f"regard:tatoeba_cmn_eng/{split}.tsv.gz"], roles)
    short = [row.cells for row, _ in zip(rows, range(n_rows), strict=False)]  # lines run from short to long
    text = "".join(f"{fields['source']}\t{fields['target']}\n" for fields in short)
    (folder / f"{split}.tsv.gz").write_bytes(gzip.compress(text.encode()))

# %% What shall learn them: a recurrent encoder-decoder with Bahdanau's attention
recipe = regard.Recipe.parse(
    {
        "run": str(folder / "run"),
        "task": {"kind": "translate", "tokenizer": {"kind": "bpe", "vocab_size": 3000}},
        "data": {split: str(folder / f"{split}.tsv.gz") for split in ("train", "valid", "test")},
        "model": {"kind": "rnn_seq2seq", "attention": "additive", "d_embed": 128, "d_hidden": 128},
        "train": {"max_steps": steps, "batch_tokens": 1024, "lr": 4e-3, "warmup": 30, "eval_every": 100},
    }
)
trained = regard.train(recipe)
print(trained.metrics["scores"]["test"])

# %% What it says
for text in ("你好。", "谢谢你。", "我很忙。"):
    print(text, "→", trained.predict(text).text)

# %% What it looked at
explanation = trained.explain("我很忙。")
for row, column, weight in explanation.strongest(5):
    print(f"{row!r} looked at {column!r}: {weight:.2f}")
if explanation.trust:
    print(explanation.trust.sentence)
explanation.to_html(folder / "attention.html")
print(folder / "attention.html")

"""Train a classifier of film reviews and shade the words by their weight; then ask whether to believe it.

    python examples/classify_and_explain.py [STEPS]

Two models on the same sentences: one pools over the states of an LSTM, the other over the words themselves.
The first has mixed the words before it weighs them. For both, the trust sentence measures whether the weights
point at what matters.
"""

# %% One recipe, two encoders
import sys
import tempfile
from pathlib import Path

import regard

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 200
folder = Path(tempfile.mkdtemp(prefix="regard-"))
sample = "regard:mr_sentence_polarity"


def recipe(encoder: str) -> regard.Recipe:
    return regard.Recipe.parse(
        {
            "run": str(folder / encoder),
            "task": {"kind": "classify", "tokenizer": {"kind": "word", "vocab_size": 8000}},
            "data": {
                "train": f"{sample}/train.tsv.gz",
                "valid": f"{sample}/valid.tsv.gz",
                "test": f"{sample}/test.tsv.gz",
                "columns": {"text": 2, "label": 1},
            },
            "model": {"kind": "classifier", "encoder": {"kind": encoder, "d_embed": 64}},
            "train": {"max_steps": steps, "batch_tokens": 1024, "lr": 3e-3, "warmup": 20},
        }
    )


# %% Train, predict, look
review = "a moving story , beautifully told , with one dull scene near the end ."
for encoder in ("rnn", "words"):
    trained = regard.train(recipe(encoder), quiet=True)
    answer = trained.predict(review)
    explanation = trained.explain(review)
    print(f"\n{encoder}: {trained.metrics['scores']['test']}")
    print(f"{answer.text} ({answer.probability:.2f})")
    for _, word, weight in explanation.strongest(4):
        print(f"  {weight:.2f} {word}")
    if explanation.trust:
        print(explanation.trust.sentence)
    explanation.to_html(folder / f"{encoder}.html")

print(f"\npages: {folder}/rnn.html, {folder}/words.html")

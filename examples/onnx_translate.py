"""Translate with an exported folder (`regard export RUN --to onnx`): onnxruntime, tokenizers and numpy alone.

    python examples/onnx_translate.py FOLDER "a text" "another"

Without arguments it only says so.
"""

import json
import sys
from pathlib import Path

import numpy as np
from onnxruntime import InferenceSession
from tokenizers import Tokenizer


def translate(folder: Path, texts: list[str]) -> list[str]:
    """The likeliest piece each time (greedy)."""
    settings = json.loads((folder / "regard.json").read_text("utf-8"))
    source = Tokenizer.from_file(str(folder / "tokenizer.json"))
    separate = folder / "target" / "tokenizer.json"
    target = Tokenizer.from_file(str(separate)) if separate.exists() else source
    read, step = (InferenceSession(folder / f"{name}.onnx") for name in ("read", "step"))
    names = [output.name for output in read.get_outputs()]
    changing = [output.name.removeprefix("next_") for output in step.get_outputs()[1:]]

    found = [source.encode(text).ids for text in texts]  # the end of the sentence is among them
    lengths = np.array([len(ids) for ids in found])
    tokens = np.array([ids + [0] * (lengths.max() - len(ids)) for ids in found])
    state = dict(zip(names, read.run(None, {"tokens": tokens, "lengths": lengths}), strict=True))
    last, ended, written = np.full(len(texts), settings["begin"]), np.zeros(len(texts), bool), []
    while len(written) < settings["most"] and not ended.all():
        logits, *changed = step.run(None, {"last": last, "lengths": lengths, **state})
        state |= zip(changing, changed, strict=True)
        logits[:, settings["never"]] = -np.inf
        last = logits.argmax(-1)
        ended |= last == settings["end"]
        written.append(last)
    rows = np.stack([*written, np.full(len(texts), settings["end"])], axis=1).tolist()
    return [target.decode(row[: row.index(settings["end"])]) for row in rows]


if __name__ == "__main__":
    if len(sys.argv) > 2 and Path(sys.argv[1]).is_dir():
        print("\n".join(translate(Path(sys.argv[1]), sys.argv[2:])))
    else:
        print(__doc__)

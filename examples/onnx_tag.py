"""Tag words with an exported folder (`regard export RUN --to onnx`): onnxruntime, tokenizers and numpy alone.

    python examples/onnx_tag.py FOLDER "words between spaces" "another sentence"

Without arguments it only says so.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from onnxruntime import InferenceSession
from tokenizers import Tokenizer


def tag(folder: Path, sentences: list[list[str]]) -> list[list[str]]:
    told = json.loads((folder / "tags.json").read_text("utf-8"))
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    rows, firsts = [], []
    for words in sentences:
        pieces = [tokenizer.encode(word, add_special_tokens=False).ids or [told["unknown"]] for word in words]
        sizes = [len(told["before"]), *map(len, pieces)]
        if sum(sizes[1:]) > told["most"]:
            raise SystemExit(f"{' '.join(words)[:60]}…: more than {told['most']} pieces; give it in parts")
        rows.append([*told["before"], *(piece for word in pieces for piece in word), told["after"]])
        firsts.append(np.cumsum(sizes[:-1]))  # a word is its first piece
    lengths = np.array([len(row) for row in rows])
    tokens = np.array([row + [0] * (lengths.max() - len(row)) for row in rows])
    session = InferenceSession(folder / "model.onnx")
    (scores,) = session.run(None, {"tokens": tokens, "lengths": lengths})
    found = (best(own[first], told["crf"]) for own, first in zip(scores, firsts, strict=True))
    return [[told["tags"][number] for number in tags] for tags in found]


def best(scores: Any, crf: dict[str, Any] | None) -> list[int]:
    """The likeliest tags (Viterbi)."""
    if crf is None:
        return [int(number) for number in scores.argmax(-1)]
    begin, step, end = (np.array(crf[name], float) for name in ("begin", "step", "end"))
    begin, step, end = (
        np.where(np.isnan(part), -np.inf, part) for part in (begin, step, end)
    )  # null forbids
    state, came = begin + scores[0], []
    for own in scores[1:]:
        going = state[:, None] + step
        came.append(going.argmax(0))
        state = going.max(0) + own
    path = [int((state + end).argmax())]
    for back in reversed(came):
        path.append(int(back[path[-1]]))
    return path[::-1]


if __name__ == "__main__":
    given = [text.split() for text in sys.argv[2:] if text.strip()]
    if given and Path(sys.argv[1]).is_dir():
        for words, tags in zip(given, tag(Path(sys.argv[1]), given), strict=True):
            print(" ".join(f"{word}/{name}" for word, name in zip(words, tags, strict=True)))
    else:
        print(__doc__)

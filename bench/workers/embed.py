"""Vectors of texts by one tool, by the clock; they go to a file, the last line tells how long it took."""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

Embed = Callable[[Sequence[str]], Any]


def regards(model: Path) -> Embed:
    import regard

    return regard.Embedder.load(model, "cpu")


def theirs(model: Path) -> Embed:
    from sentence_transformers import SentenceTransformer

    loaded = SentenceTransformer(str(model), device="cpu", local_files_only=True)
    return lambda texts: loaded.encode(list(texts), show_progress_bar=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool", choices=["regard", "sentence-transformers"])
    parser.add_argument("model", type=Path)
    parser.add_argument("texts", type=Path, help="a JSON list")
    parser.add_argument("out", type=Path, help="an .npy file")
    options = parser.parse_args()
    texts = json.loads(options.texts.read_text("utf-8"))
    embed = (regards if options.tool == "regard" else theirs)(options.model)
    embed(texts[:64])
    began = time.perf_counter()
    vectors = embed(texts)
    seconds = time.perf_counter() - began
    np.save(options.out, np.asarray(vectors))
    packages = {
        "regard": ["torch"],
        "sentence-transformers": ["torch", "sentence-transformers", "transformers"],
    }
    versions = {name: version(name) for name in packages[options.tool]}
    print(json.dumps({"sentences_per_s": len(texts) / seconds, "versions": versions}), flush=True)


if __name__ == "__main__":
    main()

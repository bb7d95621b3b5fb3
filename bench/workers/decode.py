"""Translates the texts of a file once to warm up and once by the clock, with one engine; tokenising counts.

Batches hold texts of similar length for every engine, so that no one pays for another's padding.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

Translate = Callable[[Sequence[str]], list[str]]


def regard_engine(options: argparse.Namespace) -> Translate:
    import regard

    trained = regard.load(options.folder)
    return lambda texts: [answer.text for answer in trained.predict(texts, beam=options.beam)]


def hf_engine(options: argparse.Namespace) -> Translate:
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(options.folder, local_files_only=True)
    model = AutoModelForSeq2SeqLM.from_pretrained(options.folder, local_files_only=True).eval()

    def translate(texts: Sequence[str]) -> list[str]:
        batch = tokenizer(list(texts), padding=True, return_tensors="pt")
        longest = 2 * batch.input_ids.shape[1] + 10  # as regard's own limit
        given: dict[str, Any] = {"input_ids": batch.input_ids, "attention_mask": batch.attention_mask}
        with torch.inference_mode():
            found = model.generate(**given, num_beams=options.beam, max_new_tokens=longest)
        return list(tokenizer.batch_decode(found, skip_special_tokens=True))

    return translate


ENGINES = {"regard": regard_engine, "hf": hf_engine}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("folder", type=Path, help="the model as the engine wants it")
    parser.add_argument("texts", type=Path, help="one a line")
    parser.add_argument("--beam", type=int, required=True)
    parser.add_argument("--batch", type=int, required=True)
    options = parser.parse_args()

    translate = ENGINES[options.engine](options)
    texts = options.texts.read_text("utf-8").splitlines()
    order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
    batches = [order[at : at + options.batch] for at in range(0, len(order), options.batch)]
    for batch in batches[-2:]:
        translate([texts[at] for at in batch])
    began, answers = time.perf_counter(), {}
    for batch in batches:
        answers |= zip(batch, translate([texts[at] for at in batch]), strict=True)
    seconds = time.perf_counter() - began
    packages = ("torch", "regard" if options.engine == "regard" else "transformers")
    told = {
        "texts_per_s": len(texts) / seconds,
        "answers": [answers[at] for at in range(len(texts))],
        "versions": {name: version(name) for name in packages},
    }
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()

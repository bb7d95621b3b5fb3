"""Translates the texts of a file by the clock, with one engine, warmed up; tokenising counts.

Batches hold texts of similar length for every engine, so that no one pays for another's padding. An engine
that is given all texts at once makes its own.
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

    engine = "auto" if options.engine == "auto" else "builtin"
    trained = regard.load(options.folder, engine=engine, int8=options.int8)
    return lambda texts: [answer.text for answer in trained.predict(texts, beam=options.beam, scores=False)]


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


def ct2_engine(options: argparse.Namespace) -> Translate:
    import ctranslate2
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(options.folder / "tokenizer.json"))
    names = [tokenizer.id_to_token(i) for i in range(tokenizer.get_vocab_size())]
    translator = ctranslate2.Translator(
        str(options.folder),
        compute_type="int8" if options.int8 else "float32",
        inter_threads=options.inter,
        intra_threads=options.threads // options.inter,
    )

    def translate(texts: Sequence[str]) -> list[str]:
        found = translator.translate_batch(
            [[names[i] for i in each.ids] for each in tokenizer.encode_batch_fast(list(texts))],
            beam_size=options.beam,
            batch_type=options.batch_type,
            max_batch_size=options.max_batch_size,
        )
        ids = [[tokenizer.token_to_id(piece) for piece in one.hypotheses[0]] for one in found]
        return list(tokenizer.decode_batch(ids))

    return translate


ENGINES = {"regard": regard_engine, "auto": regard_engine, "hf": hf_engine, "ct2": ct2_engine}
PACKAGES = {"hf": "transformers", "ct2": "ctranslate2"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("folder", type=Path, help="the model as the engine wants it")
    parser.add_argument("texts", type=Path, help="one a line")
    parser.add_argument("--beam", type=int, required=True)
    parser.add_argument("--batch", type=int, help="all at once unless given")
    parser.add_argument("--int8", action="store_true", help="of auto and ct2")
    parser.add_argument("--inter", type=int, default=1, help="of ct2: translations beside each other")
    parser.add_argument("--threads", type=int, default=2, help="of ct2: shared by them")
    parser.add_argument("--batch-type", choices=("examples", "tokens"), default="examples", help="of ct2")
    parser.add_argument("--max-batch-size", type=int, default=32, help="of ct2")
    options = parser.parse_args()

    translate = ENGINES[options.engine](options)
    texts = options.texts.read_text("utf-8").splitlines()
    batches = [list(range(len(texts)))]
    if options.batch:
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        batches = [order[at : at + options.batch] for at in range(0, len(order), options.batch)]
    for batch in batches[-2:]:
        translate([texts[at] for at in batch])
    began, answers = time.perf_counter(), {}
    for batch in batches:
        answers |= zip(batch, translate([texts[at] for at in batch]), strict=True)
    seconds = time.perf_counter() - began
    packages = ("torch", PACKAGES.get(options.engine, "regard"))
    told = {
        "texts_per_s": len(texts) / seconds,
        "answers": [answers[at] for at in range(len(texts))],
        "versions": {name: version(name) for name in packages},
    }
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()

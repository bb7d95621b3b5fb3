"""Hugging Face's Marian from random weights in a plain PyTorch loop: fused attention, fused Adam.

Batches are 220 sentences in random order, padded to the longest; `--batches bucketed` sorts by length into
4,096-token batches instead.
"""

import random
from collections.abc import Iterator
from pathlib import Path

import torch
from model import (
    ADAM_BETAS,
    BATCH_TOKENS,
    CLIP_NORM,
    D_FF,
    D_MODEL,
    DROPOUT,
    LABEL_SMOOTHING,
    N_HEADS,
    N_LAYERS,
    noam_rate,
)
from stopwatch import Stopwatch, arguments
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import MarianConfig, MarianMTModel

PAD, START, END = 1, 2, 3
IGNORED = -100
SENTENCES = 220
Pair = tuple[Tensor, Tensor]


def read_pairs(corpus: Path) -> tuple[list[Pair], int]:
    vocabulary = (corpus / "vocabulary.txt").read_text(encoding="utf-8").split()
    ids = {piece: number for number, piece in enumerate(vocabulary)}

    def side(language: str) -> list[Tensor]:
        lines = (corpus / f"train.{language}").read_text(encoding="utf-8").splitlines()
        return [torch.tensor([*(ids[piece] for piece in line.split()), END]) for line in lines]

    return list(zip(side("en"), side("de"), strict=True)), len(vocabulary)


def random_batches(pairs: list[Pair], dice: random.Random) -> Iterator[list[Pair]]:
    while True:
        order = dice.sample(pairs, len(pairs))
        yield from (order[first : first + SENTENCES] for first in range(0, len(order), SENTENCES))


def bucketed_batches(pairs: list[Pair], dice: random.Random) -> Iterator[list[Pair]]:
    batches: list[list[Pair]] = [[]]
    for pair in sorted(pairs, key=lambda pair: (len(pair[1]), len(pair[0]))):
        if (len(batches[-1]) + 1) * max(map(len, pair)) > BATCH_TOKENS:
            batches.append([])
        batches[-1].append(pair)
    while True:
        yield from dice.sample(batches, len(batches))


def build_model(vocabulary_size: int) -> MarianMTModel:
    config = MarianConfig(
        vocab_size=vocabulary_size,
        d_model=D_MODEL,
        encoder_layers=N_LAYERS,
        decoder_layers=N_LAYERS,
        encoder_attention_heads=N_HEADS,
        decoder_attention_heads=N_HEADS,
        encoder_ffn_dim=D_FF,
        decoder_ffn_dim=D_FF,
        activation_function="relu",
        dropout=DROPOUT,
        activation_dropout=0.0,
        attention_dropout=0.0,
        scale_embedding=True,
        pad_token_id=PAD,
        eos_token_id=END,
        forced_eos_token_id=END,
        decoder_start_token_id=START,
        attn_implementation="sdpa",
    )
    return MarianMTModel(config).train()


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--batches", choices=("random", "bucketed"), default="random")
    parser.add_argument("--bfloat16", action="store_true", help="products, by autocast")
    options = parser.parse_args()
    torch.manual_seed(42)
    pairs, vocabulary_size = read_pairs(options.corpus)
    model = build_model(vocabulary_size)
    optimizer = torch.optim.Adam(model.parameters(), lr=1.0, betas=ADAM_BETAS, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: noam_rate(step + 1))
    watch = Stopwatch(options.warmup, options.seconds)
    batches = {"random": random_batches, "bucketed": bucketed_batches}[options.batches]

    for batch in batches(pairs, random.Random(42)):
        sources, targets = zip(*batch, strict=True)
        source = pad_sequence(sources, batch_first=True, padding_value=PAD)
        labels = pad_sequence(targets, batch_first=True, padding_value=IGNORED)
        shifted = labels.roll(1, dims=1).masked_fill(labels.roll(1, dims=1) == IGNORED, PAD)
        shifted[:, 0] = START
        with torch.autocast("cpu", torch.bfloat16, enabled=options.bfloat16):
            logits = model(input_ids=source, attention_mask=source != PAD, decoder_input_ids=shifted).logits
            loss = torch.nn.functional.cross_entropy(
                logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED, label_smoothing=LABEL_SMOOTHING
            )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if not watch.step(sum(map(len, targets)), loss.item()):
            break
    name = "hf" if options.batches == "random" else "hf_bucketed"
    watch.report(name, model, "transformers", "numpy")


if __name__ == "__main__":
    main()

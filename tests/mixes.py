"""With `batch_invariant` an answer is the same to the bit, alone or in any company.

python tests/mixes.py        # a part of `make soak`
"""

import argparse
import random
import time

import torch

from tiny import rnn, transformer, untrained

WORDS = ("the", "grey", "heron", "stands", "still", "fog", "lies", "on", "river")
SEARCH = {"batch_invariant": True, "beam": 2, "max_ratio": 0.5}


def mixes(count: int) -> int:
    """So many random mixes of texts, orders and paddings, half of them for each kind of model."""
    rng = random.Random(5)
    texts = [" ".join(rng.choices(WORDS, k=rng.randint(1, 9))) for _ in range(20)]
    done = 0
    for config in (transformer(), rnn()):
        trained = untrained(config)
        alone = {text: trained.predict(text, **SEARCH) for text in texts}
        for _ in range(count // 2):
            mix = rng.choices(texts, k=rng.randint(1, 5))
            assert trained.predict(mix, **SEARCH) == [alone[text] for text in mix], mix
            done += 1
    return done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    began = time.perf_counter()
    print(f"{mixes(options.count):,} mixes, equal to the bit ({time.perf_counter() - began:.0f} s)")


if __name__ == "__main__":
    main()

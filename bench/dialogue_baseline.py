"""What a dialogue model has to beat: the reply to the most similar context of the training data.

    python bench/dialogue_baseline.py TRAIN TEST

Contexts are compared by BM25 over the words of their last turns; the reply is the first that the nearest one
has. It is scored as `regard eval` scores a model, beside what people said.
"""

import argparse
import json
import math
from collections import Counter, defaultdict

import numpy as np

from regard.files.row import Row
from regard.metrics.rouge import words
from regard.metrics.text import bleu, counted_of_many, scored, signature
from regard.metrics.variety import distinct
from regard.tasks import DialogueConfig, task_rows

ROLES = {"context": None, "reply": None}
K1, B = 1.5, 0.75
"""How soon a repeated word counts no more, and how much long contexts are held back: the usual values."""


class Nearest:
    def __init__(self, contexts: list[list[str]]) -> None:
        self.places: dict[str, dict[int, int]] = defaultdict(dict)
        """Word → the contexts it stands in, and how often."""
        for place, context in enumerate(contexts):
            for word, count in Counter(context).items():
                self.places[word][place] = count
        self.lengths = [len(context) for context in contexts]
        self.usual = sum(self.lengths) / len(contexts)

    def __call__(self, context: list[str]) -> int:
        """The place of the most similar context; the first of equals."""
        scores: dict[int, float] = defaultdict(float)
        for word in set(context):
            found = self.places.get(word, {})
            rarity = math.log(1 + (len(self.lengths) - len(found) + 0.5) / (len(found) + 0.5))
            for place, count in found.items():
                slope = K1 * (1 - B + B * self.lengths[place] / self.usual)
                scores[place] += rarity * count * (K1 + 1) / (count + slope)
        return min(scores, key=lambda place: (-scores[place], place)) if scores else 0


def asked(file: str) -> list[Row]:
    """A row for each context, with all its replies."""
    return [row for row in task_rows(DialogueConfig(), [file], ROLES) if row.cells["references"]]


def last_turns(row: Row, turns: int) -> list[str]:
    return words(" ".join(row.cells["context"].split("\n")[-turns:]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("--turns", type=int, default=3, help="last turns that are compared")
    options = parser.parse_args()
    train, test = asked(options.train), asked(options.test)
    nearest = Nearest([last_turns(row, options.turns) for row in train])
    said = [train[nearest(last_turns(row, options.turns))].cells["reply"] for row in test]
    references = [row.cells["references"].split("\n") for row in test]
    metric = bleu("13a")
    (score,) = scored(metric, np.sum(counted_of_many(metric, said, references), axis=0, keepdims=True))
    people = distinct([own[0] for own in references])
    print(json.dumps({"contexts": len(test), "bleu": score, **distinct(said), "people": people}, indent=1))
    print(signature(metric, sorted(set(map(len, references)))))


if __name__ == "__main__":
    main()

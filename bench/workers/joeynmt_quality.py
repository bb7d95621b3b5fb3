"""JoeyNMT trained by its own `train` entry until its greedy translations of val reach a BLEU, or time is up.

Prints a line of JSON for every validation: minutes with all validations, and without. Its pieces are joined
to words before they are scored, as the other tool's are.
"""

import argparse
import gzip
import json
import logging
import time
from pathlib import Path

import joeynmt.training
import yaml
from corpus import joined
from joeynmt.helpers import make_model_dir
from joeynmt.transformer_layers import MultiHeadedAttention, PositionwiseFeedForward
from sacrebleu.metrics import BLEU

INNER_DROPOUT = 0.1  # as in the recipe


def main() -> None:
    began = time.perf_counter()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--corpus", type=Path, required=True, help="folder written by bench/corpus.py")
    parser.add_argument("--references", type=Path, required=True, help="val.de.gz")
    parser.add_argument("--folder", type=Path, required=True, help="where JoeyNMT keeps its things")
    parser.add_argument("--bleu", type=float, required=True)
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--every", type=int, default=500, help="steps between validations")
    parser.add_argument("--lr", type=float, help="instead of the config's")
    options = parser.parse_args()
    logging.disable(logging.INFO)
    with gzip.open(options.references, "rt", encoding="utf-8") as file:
        references = [line.strip() for line in file]

    class Watched(joeynmt.training.TrainManager):
        validating = 0.0
        """Seconds so far."""

        def train_and_validate(self, **data: object) -> None:
            for module in self.model.modules():
                if isinstance(module, MultiHeadedAttention):
                    module.dropout.p = 0.0
                if isinstance(module, PositionwiseFeedForward):
                    module.pwff_layer[2].p = INNER_DROPOUT
            super().train_and_validate(**data)

        def _validate(self, valid_data: object) -> None:
            asked = time.perf_counter()
            super()._validate(valid_data)
            lines = (self.model_dir / f"{self.stats.steps}.hyps").read_text("utf-8").splitlines()
            bleu = BLEU(tokenize="none").corpus_score([joined(line) for line in lines], [references]).score
            self.validating += time.perf_counter() - asked
            minutes = (time.perf_counter() - began) / 60
            told = {"step": self.stats.steps, "bleu": bleu, "minutes": minutes}
            print(json.dumps(told | {"training": minutes - self.validating / 60}), flush=True)
            if bleu >= options.bleu or minutes > options.minutes:
                raise KeyboardInterrupt  # which JoeyNMT expects of its users

    config = yaml.safe_load(options.config.read_text("utf-8"))
    config["training"] |= {"validation_freq": options.every, "logging_freq": options.every}
    config["model_dir"] = str(options.folder)
    config["data"] |= {"train": str(options.corpus / "train"), "dev": str(options.corpus / "val")}
    for side in ("src", "trg"):
        config["data"][side]["voc_file"] = str(options.corpus / "vocabulary.txt")
    if options.lr is not None:
        config["training"]["learning_rate"] = options.lr
    joeynmt.training.TrainManager = Watched
    make_model_dir(options.folder)
    joeynmt.training.train(0, None, config, skip_test=True)


if __name__ == "__main__":
    main()

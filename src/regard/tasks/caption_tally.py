"""The tally of captions: the scores of the field, how well attention points, and what people reach."""

from dataclasses import dataclass, replace

import numpy as np

from regard.metrics.captions import SIGNATURE, Cut, bleu, bleu_counts, cider_d, rouge_l
from regard.metrics.resample import Floats, Scores, unweighted
from regard.metrics.tally import Columns

POINTING = "share of words naming an object during which attention is highest inside its box"


@dataclass(frozen=True)
class CaptionTally(Columns):
    captions: list[str]
    references: list[list[str]]
    pointed: list[tuple[int, int]]
    """Words that name an object: those at which attention points into its box, and all."""

    @property
    def truth(self) -> list[list[str]]:
        return self.references

    def weighed(self, weights_RN: Floats) -> Scores:
        cut = Cut.of(self.captions, self.references)
        each = {"rougeL": rouge_l(cut), "cider": cider_d(cut)}
        total_R = weights_RN.sum(1)
        scores = bleu(weights_RN @ bleu_counts(cut))
        scores |= {name: weights_RN @ score_N / total_R for name, score_N in each.items()}
        hits_R, named_R = (weights_RN @ np.array(self.pointed, np.float64)).T
        if named_R.all():
            scores["pointing"] = 100 * hits_R / named_R
        return scores

    def metrics(self) -> dict[str, float]:
        return unweighted(self)

    def signatures(self) -> dict[str, str]:
        pointing = {"pointing": POINTING} if any(n for _, n in self.pointed) else {}
        return {"captions": SIGNATURE, **pointing}

    def by_kind(self) -> dict[str, dict[str, float]]:
        """What a caption of people scores against the others of its picture, beside the model's."""
        places = [at for at, several in enumerate(self.references) if len(several) > 1]
        if not places:
            return {}
        people = replace(
            self.taken(places),
            captions=[self.references[at][0] for at in places],
            references=[self.references[at][1:] for at in places],
            pointed=[(0, 0)] * len(places),
        )
        return {"captions": self.metrics(), "first reference against the others": people.metrics()}

"""The claims of the texts this project goes back to, each as an experiment that anyone can run again.

One file = one experiment. EXPERIMENTS is the one table, in the order of the book in docs/experiments.
"""

from regard.experiments.depth import DEPTH
from regard.experiments.experiment import Experiment, Outcome, Run
from regard.experiments.long_distance import LONG_DISTANCE
from regard.experiments.parallelism import PARALLELISM
from regard.experiments.positions import POSITIONS
from regard.experiments.price import PRICE
from regard.experiments.scale import SCALE
from regard.experiments.static import STATIC

EXPERIMENTS: dict[str, Experiment] = {
    one.name: one for one in (PARALLELISM, LONG_DISTANCE, PRICE, SCALE, POSITIONS, DEPTH, STATIC)
}

__all__ = ["EXPERIMENTS", "Experiment", "Outcome", "Run"]

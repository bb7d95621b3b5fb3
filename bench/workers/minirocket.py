"""MiniRocket of aeon on one set of labelled series: accuracy by seed and seconds, as a line of JSON.

Run by bench/series_sets.py with an interpreter that has aeon.
"""

import json
import sys
import time

from aeon.classification.convolution_based import MiniRocketClassifier
from aeon.datasets import load_from_ts_file


def main(train: str, test: str, n_seeds: int) -> None:
    (X, y), (X_test, y_test) = load_from_ts_file(train), load_from_ts_file(test)
    if isinstance(
        X, list
    ):  # of unequal length: filled up with the last value, as MiniRocket needs one length
        longest = max(series.shape[1] for series in [*X, *X_test])
        X, X_test = (filled(part, longest) for part in (X, X_test))
    scores, begin = [], time.perf_counter()
    for seed in range(1, n_seeds + 1):
        model = MiniRocketClassifier(random_state=seed, n_jobs=1).fit(X, y)
        scores.append(float((model.predict(X_test) == y_test).mean()))
    print(json.dumps({"accuracy": scores, "seconds": (time.perf_counter() - begin) / n_seeds}))


def filled(series, longest):
    import numpy as np

    return np.stack([np.pad(one, ((0, 0), (0, longest - one.shape[1])), mode="edge") for one in series])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))

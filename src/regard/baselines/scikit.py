"""Methods of scikit-learn, which comes with `regard[baselines]` and is imported only here."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.errors import RunError
from regard.text.unicode import MARK

Matrix = Any
"""A row for each example: a numpy array, or a sparse matrix of scipy."""

WORD = rf"[^\W_](?:[\w{MARK}'’-]*\w)?|[^\w\s]"
"""A word, or a single punctuation character."""
MOST_NGRAMS = 50_000
"""The commonest n-grams of words that are kept, and as many of characters."""
MOST_PRODUCTS = 10_000_000
"""Weights times rows of the largest exact fit; beyond it, gradient steps are used."""
PASSES = 20


def need() -> None:
    """Raise RunError if scikit-learn is missing."""
    try:
        import sklearn  # noqa: F401
    except ImportError:
        raise RunError("this needs scikit-learn; install it with: pip install 'regard[baselines]'") from None


class Ngrams:
    """Tf-idf weights of the commonest n-grams of words (1 and 2) and of characters within words (1 to 5)."""

    def __init__(self, texts: Sequence[str]) -> None:
        need()
        from sklearn.feature_extraction.text import TfidfVectorizer

        alike: dict[str, Any] = {"max_features": MOST_NGRAMS, "sublinear_tf": True, "dtype": np.float32}
        words = TfidfVectorizer(ngram_range=(1, 2), token_pattern=WORD, **alike)
        characters = TfidfVectorizer(ngram_range=(1, 5), analyzer="char_wb", **alike)
        self._vectorizers = [one for one in (words, characters) if _fits(one, texts)]

    def weights(self, texts: Sequence[str]) -> Matrix:
        return side_by_side([one.transform(texts) for one in self._vectorizers] or [blank(len(texts))])


def _fits(vectorizer: Any, texts: Sequence[str]) -> bool:
    """Learn the n-grams; False if there are none."""
    try:
        vectorizer.fit(texts)
    except ValueError:
        return False
    return True


def blank(n_rows: int) -> Matrix:
    """A column of zeros."""
    from scipy.sparse import csr_matrix

    return csr_matrix((n_rows, 1), dtype=np.float32)


def side_by_side(parts: Sequence[Matrix]) -> Matrix:
    """Join sparse matrices with the same rows into one."""
    from scipy.sparse import hstack

    return hstack(parts, format="csr", dtype=np.float32)


class LogisticRegression:
    """Predicts a label for each row, or, where labels are tuples, any number of independent labels.

    The fit is exact if that takes seconds, else by gradient steps over the rows; deterministic.
    """

    def __init__(
        self,
        rows_NF: Matrix,
        labels: Sequence[Any],
        c: float = 10.0,
        threshold: float = 0.5,
        steps: int | None = None,
    ) -> None:
        """Fit the model. `c` is the inverse regularisation: a large one gives weight to rare n-grams.

        `steps` limits the steps of an exact fit, for dense rows.
        """
        need()
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression as Exact
        from sklearn.linear_model import SGDClassifier

        self.several, self.threshold = isinstance(labels[0], tuple), threshold
        self.names = sorted({name for names in labels for name in names} if self.several else set(labels))
        n_values = getattr(rows_NF, "nnz", rows_NF.size)

        def model() -> Any:
            if steps or n_values * len(self.names) <= MOST_PRODUCTS:
                return Exact(C=c, max_iter=steps or 200)
            alpha = 1 / (c * rows_NF.shape[0])
            return SGDClassifier(loss="log_loss", alpha=alpha, max_iter=PASSES, random_state=0)

        targets = [[name in names for names in labels] for name in self.names] if self.several else [labels]
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            self._models = [
                model().fit(rows_NF, target) if len(set(target)) > 1 else None for target in targets
            ]

    def answers(self, rows_NF: Matrix) -> list[Any]:
        if not self.several:
            (model,) = self._models
            labels: list[Any] = self.names * rows_NF.shape[0] if model is None else [*model.predict(rows_NF)]
            return labels
        likely = [
            np.ones(rows_NF.shape[0]) if model is None else model.predict_proba(rows_NF)[:, 1]
            for model in self._models
        ]
        likely_NC = np.array(likely).T
        return [tuple(self.names[n] for n in np.flatnonzero(row >= self.threshold)) for row in likely_NC]

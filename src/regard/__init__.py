"""regard: train, look inside and serve attention models on your own data.

    import regard
    trained = regard.train("recipe.toml")
    trained.predict(["我们试试看！"])
    trained.explain("我们试试看！").to_html("attention.html")

Names are fetched when first used, so that `import regard` and `regard --help` do not wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.api import Evaluation, Trained, load, train
    from regard.embed import Embedder
    from regard.recipe import Recipe
    from regard.relate import Relations

__version__ = "0.1.0"
__all__ = ["Embedder", "Evaluation", "Recipe", "Relations", "Trained", "__version__", "load", "train"]

_HOMES = {
    "Embedder": "regard.embed",
    "Evaluation": "regard.api",
    "Recipe": "regard.recipe",
    "Relations": "regard.relate",
    "Trained": "regard.api",
    "load": "regard.api",
    "train": "regard.api",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__

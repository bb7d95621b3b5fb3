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
    from regard.api.embed import Embedder
    from regard.api.relate import Relations
    from regard.api.trained import Evaluation, Trained, load, train
    from regard.recipe import Recipe

__version__ = "0.1.0"
__all__ = ["Embedder", "Evaluation", "Recipe", "Relations", "Trained", "__version__", "load", "train"]

_HOMES = {
    "Embedder": "regard.api.embed",
    "Evaluation": "regard.api.trained",
    "Recipe": "regard.recipe",
    "Relations": "regard.api.relate",
    "Trained": "regard.api.trained",
    "load": "regard.api.trained",
    "train": "regard.api.trained",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__

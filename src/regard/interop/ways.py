"""Which models go where: for each task and goal who writes the folder, and who answers on both sides."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from regard.errors import RunError, did_you_mean
from regard.interop import (
    answering,
    continuing,
    ct2,
    here,
    hf,
    hf_answerer,
    hf_classifier,
    hf_gpt2,
    hf_pretraining,
    hf_tagger,
    labelling,
    onnx_answerer,
    onnx_classifier,
    onnx_tagger,
    onnx_translator,
    tagging,
)
from regard.interop.parity import Engine
from regard.models import Transformer
from regard.tasks import AnyTask

Goal = Literal["hf", "ct2", "onnx"]
MODELS = {"hf": "Hugging Face's models", "ct2": "CTranslate2"}


@dataclass(frozen=True)
class Leaving:
    """A model on its way; its task, itself and its config are those of one row of `WAYS`."""

    task: Any
    model: Any
    config: Any
    sizes: Sequence[int]
    """Pieces of what will be asked."""
    int8: bool = False


Sides = tuple[Engine[Any], Engine[Any]]
"""Here and there."""
Way = Callable[[Leaving, Path], Sides]


def _translator_for_hf(it: Leaving, folder: Path) -> Sides:
    _require_transformer(it, "hf")
    search = here.Search.of(it.task, it.sizes)
    hf.write(it.task, it.model, it.config, folder)
    return here.Translator(it.task, it.model, search), hf.Engine(folder, it.task, search)


def _translator_for_ct2(it: Leaving, folder: Path) -> Sides:
    _require_transformer(it, "ct2")
    search = here.Search.of(it.task, it.sizes)
    ct2.write(it.task, it.model, it.config, folder, int8=it.int8)
    ours = here.Translator(it.task, it.model, search, closes_first=True)
    return ours, ct2.Engine(folder, search, int8=it.int8)


def _translator_for_onnx(it: Leaving, folder: Path) -> Sides:
    search = here.Search.of(it.task, it.sizes, greedy=True)
    onnx_translator.write(it.task, it.model, folder)
    return here.Translator(it.task, it.model, search), onnx_translator.Engine(folder, search)


def _classifier_for_hf(it: Leaving, folder: Path) -> Sides:
    hf_classifier.write(it.task, it.model, it.config, folder)
    return labelling.here(it.task, it.model), hf_classifier.there(folder)


def _classifier_for_onnx(it: Leaving, folder: Path) -> Sides:
    onnx_classifier.write(it.task, it.model, folder)
    return labelling.here(it.task, it.model), onnx_classifier.there(folder)


def _tagger_for_hf(it: Leaving, folder: Path) -> Sides:
    hf_tagger.write(it.task, it.model, it.config, folder)
    return tagging.Here(it.task, it.model), hf_tagger.there(it.task, folder)


def _tagger_for_onnx(it: Leaving, folder: Path) -> Sides:
    onnx_tagger.write(it.task, it.model, folder)
    return tagging.Here(it.task, it.model), onnx_tagger.there(it.task, folder)


def _answerer_for_hf(it: Leaving, folder: Path) -> Sides:
    hf_answerer.write(it.task, it.model, it.config, folder)
    return answering.Side("regard", it.task, it.model), hf_answerer.there(folder)


def _answerer_for_onnx(it: Leaving, folder: Path) -> Sides:
    onnx_answerer.write(it.task, it.model, folder)
    return answering.Side("regard", it.task, it.model), onnx_answerer.there(folder)


def _language_model_for_hf(it: Leaving, folder: Path) -> Sides:
    hf_gpt2.write(it.task, it.model, it.config, folder)
    return continuing.Here(it.task, it.model), continuing.There(folder, it.task)


def _pretrained_for_hf(it: Leaving, folder: Path) -> Sides:
    hf_pretraining.write(it.task, it.model, it.config, folder)
    return hf_pretraining.here(it.task, it.model), hf_pretraining.there(it.task, folder)


WAYS: dict[tuple[str, Goal], Way] = {
    ("translate", "hf"): _translator_for_hf,
    ("translate", "ct2"): _translator_for_ct2,
    ("translate", "onnx"): _translator_for_onnx,
    ("summarize", "hf"): _translator_for_hf,
    ("summarize", "ct2"): _translator_for_ct2,
    ("summarize", "onnx"): _translator_for_onnx,
    ("classify", "hf"): _classifier_for_hf,
    ("classify", "onnx"): _classifier_for_onnx,
    ("classify_pair", "hf"): _classifier_for_hf,
    ("classify_pair", "onnx"): _classifier_for_onnx,
    ("multilabel", "hf"): _classifier_for_hf,
    ("multilabel", "onnx"): _classifier_for_onnx,
    ("relation", "onnx"): _classifier_for_onnx,
    ("tag", "hf"): _tagger_for_hf,
    ("tag", "onnx"): _tagger_for_onnx,
    ("answer", "hf"): _answerer_for_hf,
    ("answer", "onnx"): _answerer_for_onnx,
    ("language_model", "hf"): _language_model_for_hf,
    ("pretrain", "hf"): _pretrained_for_hf,
}


def way(task: AnyTask, to: str) -> Way:
    """RunError, in a sentence that names another goal, if there is none."""
    if to not in get_args(Goal):
        raise RunError(f"{to}: not an engine to export to{did_you_mean(to, get_args(Goal))}")
    goals: dict[str, Way] = {goal: own for (kind, goal), own in WAYS.items() if kind == task.kind}
    if to in goals:
        return goals[to]
    if "onnx" in goals:
        raise _only_onnx(to, _called(task))
    if "hf" in goals:
        raise RunError(f"{to}: {_called(task)} leaves for Hugging Face only; export to hf")
    raise RunError(f"{to}: {task.kind} models cannot leave yet; serve them with regard serve")


def _called(task: AnyTask) -> str:
    """`a tagger`, `an answerer`."""
    name = {"language_model": "language model", "pretrain": "pretrained BERT"}.get(task.kind, task.models[0])
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def _require_transformer(it: Leaving, to: str) -> None:
    if not isinstance(it.model, Transformer):
        raise _only_onnx(to, "a recurrent model")


def _only_onnx(to: str, what: str) -> RunError:
    return RunError(f"{to}: {what} has no counterpart in {MODELS[to]}; export to onnx")

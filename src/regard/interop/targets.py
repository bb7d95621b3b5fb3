"""Export targets: for each task and target, the exporter that writes the folder and opens both engines."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from regard.errors import RunError, did_you_mean
from regard.fields.image import Image
from regard.fields.text import Text
from regard.interop import (
    answer_parity,
    continuation_parity,
    ct2,
    hf,
    hf_answerer,
    hf_classifier,
    hf_gpt2,
    hf_pretraining,
    hf_tagger,
    hf_vit,
    label_parity,
    onnx_answerer,
    onnx_classifier,
    onnx_pictures,
    onnx_recommender,
    onnx_tagger,
    onnx_transcriber,
    onnx_translator,
    tag_parity,
)
from regard.interop.parity import Engine
from regard.interop.translation_parity import Search, TranslationEngine
from regard.models import Transformer
from regard.tasks import AnyTask

Target = Literal["hf", "ct2", "onnx"]
LIBRARIES = {"hf": "Hugging Face's models", "ct2": "CTranslate2"}


@dataclass(frozen=True)
class Export:
    """One model to export; task, model and config are of the types its exporter expects."""

    task: Any
    model: Any
    config: Any
    sizes: Sequence[int]
    """Token counts of the texts that the parity check will ask about."""
    int8: bool = False


Engines = tuple[Engine[Any], Engine[Any]]
"""Ours and theirs."""
Exporter = Callable[[Export, Path], Engines]


def _translator_to_hf(export: Export, folder: Path) -> Engines:
    _require_transformer(export, "hf")
    search = Search.of(export.task, export.sizes)
    hf.write(export.task, export.model, export.config, folder)
    ours = TranslationEngine(export.task, export.model, search)
    return ours, hf.HFTranslationEngine(folder, export.task, search)


def _translator_to_ct2(export: Export, folder: Path) -> Engines:
    _require_transformer(export, "ct2")
    search = Search.of(export.task, export.sizes)
    ct2.write(export.task, export.model, export.config, folder, int8=export.int8)
    ours = TranslationEngine(export.task, export.model, search, masks_first=True)
    return ours, ct2.CT2TranslationEngine(folder, search, int8=export.int8)


def _translator_to_onnx(export: Export, folder: Path) -> Engines:
    search = Search.of(export.task, export.sizes, greedy=True)
    onnx_translator.write(export.task, export.model, folder)
    ours = TranslationEngine(export.task, export.model, search)
    return ours, onnx_translator.ONNXTranslationEngine(folder, search)


def _classifier_to_hf(export: Export, folder: Path) -> Engines:
    if isinstance(export.task.input, Image):
        hf_vit.write(export.task, export.model, export.config, folder)
        ours = label_parity.our_engine(export.task, export.model)
        return ours, hf_vit.load_engine(folder, export.task.input)
    _refuse_other_kinds(export)
    hf_classifier.write(export.task, export.model, export.config, folder)
    return label_parity.our_engine(export.task, export.model), hf_classifier.load_engine(folder)


def _classifier_to_onnx(export: Export, folder: Path) -> Engines:
    if isinstance(export.task.input, Image):
        onnx_pictures.write(export.task, export.model, folder)
        ours = label_parity.our_engine(export.task, export.model)
        return ours, onnx_pictures.load_engine(folder, export.task.input)
    _refuse_other_kinds(export)
    onnx_classifier.write(export.task, export.model, folder)
    return label_parity.our_engine(export.task, export.model), onnx_classifier.load_engine(folder)


def _refuse_other_kinds(export: Export) -> None:
    """Raise RunError for a classifier of anything but text."""
    kinds = [field.kind for field in export.task.given.values() if field.reads != Text.reads]
    if kinds:
        raise RunError(
            f"a classifier of {kinds[0]} cannot be exported yet, only those of texts and images; "
            "serve it with regard serve"
        )


def _tagger_to_hf(export: Export, folder: Path) -> Engines:
    hf_tagger.write(export.task, export.model, export.config, folder)
    return tag_parity.TagEngine(export.task, export.model), hf_tagger.load_engine(export.task, folder)


def _tagger_to_onnx(export: Export, folder: Path) -> Engines:
    onnx_tagger.write(export.task, export.model, folder)
    return tag_parity.TagEngine(export.task, export.model), onnx_tagger.load_engine(export.task, folder)


def _answerer_to_hf(export: Export, folder: Path) -> Engines:
    hf_answerer.write(export.task, export.model, export.config, folder)
    ours = answer_parity.AnswerEngine("regard", export.task, export.model)
    return ours, hf_answerer.load_engine(folder)


def _answerer_to_onnx(export: Export, folder: Path) -> Engines:
    onnx_answerer.write(export.task, export.model, folder)
    ours = answer_parity.AnswerEngine("regard", export.task, export.model)
    return ours, onnx_answerer.load_engine(folder)


def _language_model_to_hf(export: Export, folder: Path) -> Engines:
    hf_gpt2.write(export.task, export.model, export.config, folder)
    ours = continuation_parity.ContinuationEngine(export.task, export.model)
    return ours, continuation_parity.HFContinuationEngine(folder, export.task)


def _pretrained_to_hf(export: Export, folder: Path) -> Engines:
    hf_pretraining.write(export.task, export.model, export.config, folder)
    ours = hf_pretraining.our_engine(export.task, export.model)
    return ours, hf_pretraining.load_engine(export.task, folder)


def _recommender_to_onnx(export: Export, folder: Path) -> Engines:
    onnx_recommender.write(export.task, export.model, export.config, folder)
    return onnx_recommender.our_engine(export.task, export.model), onnx_recommender.load_engine(folder)


def _transcriber_to_onnx(export: Export, folder: Path) -> Engines:
    onnx_transcriber.write(export.task, export.model, folder)
    return onnx_transcriber.engines(export.task, export.model, folder)


EXPORTERS: dict[tuple[str, Target], Exporter] = {
    ("translate", "hf"): _translator_to_hf,
    ("translate", "ct2"): _translator_to_ct2,
    ("translate", "onnx"): _translator_to_onnx,
    ("summarize", "hf"): _translator_to_hf,
    ("summarize", "ct2"): _translator_to_ct2,
    ("summarize", "onnx"): _translator_to_onnx,
    ("classify", "hf"): _classifier_to_hf,
    ("classify", "onnx"): _classifier_to_onnx,
    ("classify_pair", "hf"): _classifier_to_hf,
    ("classify_pair", "onnx"): _classifier_to_onnx,
    ("multilabel", "hf"): _classifier_to_hf,
    ("multilabel", "onnx"): _classifier_to_onnx,
    ("relation", "onnx"): _classifier_to_onnx,
    ("tag", "hf"): _tagger_to_hf,
    ("tag", "onnx"): _tagger_to_onnx,
    ("answer", "hf"): _answerer_to_hf,
    ("answer", "onnx"): _answerer_to_onnx,
    ("language_model", "hf"): _language_model_to_hf,
    ("pretrain", "hf"): _pretrained_to_hf,
    ("recommend", "onnx"): _recommender_to_onnx,
    ("transcribe", "onnx"): _transcriber_to_onnx,
}


def find_exporter(task: AnyTask, to: str) -> Exporter:
    """Find the exporter for a task and target; RunError names a target that works, if there is none."""
    if to not in get_args(Target):
        raise RunError(f"{to}: unknown export target{did_you_mean(to, get_args(Target))}")
    exporters: dict[str, Exporter] = {
        target: exporter for (kind, target), exporter in EXPORTERS.items() if kind == task.kind
    }
    if to in exporters:
        return exporters[to]
    if "onnx" in exporters:
        raise _only_onnx(to, _model_name(task))
    if "hf" in exporters:
        raise RunError(f"{to}: {_model_name(task)} can only be exported to Hugging Face; export to hf")
    raise RunError(f"{to}: {task.kind} models cannot be exported yet; serve them with regard serve")


def _model_name(task: AnyTask) -> str:
    """Name the task's model with its article: `a tagger`, `an answerer`."""
    name = {
        "language_model": "language model",
        "pretrain": "pretrained BERT",
        "recommend": "recommender",
        "transcribe": "transcriber",
    }.get(task.kind, task.models[0])
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def _require_transformer(export: Export, to: str) -> None:
    if not isinstance(export.model, Transformer):
        raise _only_onnx(to, "a recurrent model")


def _only_onnx(to: str, model_name: str) -> RunError:
    return RunError(f"{to}: {model_name} has no counterpart in {LIBRARIES[to]}; export to onnx")

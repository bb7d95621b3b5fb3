"""A model leaves for another engine: written, loaded there, and proven to answer as it does here, or removed.

`hf.write`, `ct2.write` and `onnx.write` make the folder and nothing more; `export` adds the proof.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

from safetensors import SafetensorError
from torch import nn

from regard import durable
from regard.data.source import rows_of
from regard.errors import RunError, did_you_mean
from regard.export import continuing, ct2, here, hf, hf_classifier, hf_gpt2, hf_pretraining, onnx
from regard.export.parity import ENOUGH, Answer, Comparison, Engine, Report, Tick, compare, require
from regard.models import (
    GPT,
    BertPretrainingConfig,
    ClassifierConfig,
    GPTConfig,
    ModelConfig,
    RNNSeq2Seq,
    Transformer,
    TransformerConfig,
)
from regard.tasks import (
    AnyTask,
    Classify,
    ClassifyPair,
    LanguageModel,
    Pretrain,
    Relation,
    Tag,
    Translate,
)
from regard.tasks.task import evaluating
from regard.tasks.translate import TextTally

Goal = Literal["hf", "ct2", "onnx"]

__all__ = ["Goal", "Report", "export"]


def export(
    task: AnyTask,
    model: nn.Module,
    config: ModelConfig,
    folder: Path,
    to: str,
    texts: Sequence[str],
    *,
    references: Sequence[str] | None = None,
    int8: bool = False,
    tick: Tick = lambda done: None,
) -> Report:
    """Write `folder` for another engine and prove it on `texts`; RunError, and no folder, if they differ.

    `references`, as many as texts, give int8 a BLEU on both sides.
    """
    if to not in get_args(Goal):
        raise RunError(f"{to}: not an engine to export to{did_you_mean(to, get_args(Goal))}")
    if int8 and to != "ct2":
        raise RunError(f"{to}: has no int8 here; export to ct2 for that")
    if folder.exists():
        raise RunError(f"{folder}: already exists; choose another")
    refuse_others(task, to)
    asked = [i for i, text in enumerate(texts) if text.strip()]
    if not asked:
        raise RunError(f"{to}: an export is checked on texts, and there are none; give some")
    told = None if references is None else [references[i] for i in asked]
    job = _Job(task, model, config, to, [texts[i] for i in asked], told, tick)
    found: list[Report] = []

    def fill(partial: Path) -> None:
        if int8:  # first without rounding, as only then a difference means a mistake
            exact = partial / "exact"
            exact.mkdir()
            job.prove(exact)
            durable.clear(exact)
        found.append(job.prove(partial, int8=int8))

    try:
        with evaluating(model):
            durable.write_folder(folder, fill)
    except (OSError, SafetensorError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise RunError(f"{folder}: cannot be written ({why}); make room, or choose another") from None
    return replace(found[0], folder=folder)


class _Job:
    """One model on its way."""

    def __init__(
        self,
        task: AnyTask,
        model: nn.Module,
        config: ModelConfig,
        to: str,
        texts: list[str],
        references: list[str] | None,
        tick: Tick,
    ) -> None:
        self.task, self.model, self.config, self.to = task, model, config, to
        self.texts, self.references, self.tick = texts, references, tick
        if isinstance(task, LanguageModel):
            self.texts = continuing.prompts(task, texts)

    def prove(self, folder: Path, *, int8: bool = False) -> Report:
        examples = self.task.encode(rows_of(self.texts, *self.task.inputs))
        sizes = [self.task.size(example)[0] for example in examples]
        ours, theirs = self._write(folder, sizes, int8=int8)
        found = compare(ours, theirs, self.texts, sizes, self.tick)
        if not int8:
            require(found, theirs.name)
        return Report(
            folder,
            theirs.name,
            len(self.texts),
            found.n_whole,
            found.identical,
            found.difference,
            found.speed_here,
            found.speed_there,
            sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()),
            bleu=self._bleu(found) if int8 else None,
            notes=tuple(self._notes(found)),
        )

    def _write(self, folder: Path, sizes: Sequence[int], *, int8: bool) -> tuple[Engine, Engine]:
        """The folder, and both sides ready to be compared."""
        task, model, config = self.task, self.model, self.config
        if isinstance(task, Classify) and self.to == "onnx":
            onnx.write_classifier(task, model, folder)
            return here.Classifier(task, model), onnx.ClassifierEngine(folder)
        if isinstance(task, Classify) and isinstance(config, ClassifierConfig) and self.to == "hf":
            hf_classifier.write(task, model, config, folder)
            return here.Classifier(task, model), hf_classifier.Engine(folder)
        if isinstance(task, Pretrain) and isinstance(config, BertPretrainingConfig) and self.to == "hf":
            hf_pretraining.write(task, model, config, folder)
            return hf_pretraining.here(task, model), hf_pretraining.there(task, folder)
        if isinstance(task, LanguageModel):
            assert isinstance(model, GPT)
            assert isinstance(config, GPTConfig)
            hf_gpt2.write(task, model, config, folder)
            return continuing.Here(task, model), continuing.There(folder, task)
        if isinstance(task, Pretrain):
            raise RunError(f"{self.to}: a pretrained BERT leaves for Hugging Face only; export to hf")
        if isinstance(task, Classify):
            raise _only_onnx(self.to, f"a {task.kind} model")
        assert isinstance(task, Translate)
        assert isinstance(model, Transformer | RNNSeq2Seq)
        if self.to == "onnx":
            search = here.Search.of(task, sizes, greedy=True)
            onnx.write(task, model, folder)
            return here.Translator(task, model, search), onnx.Engine(folder, search)
        if not (isinstance(model, Transformer) and isinstance(config, TransformerConfig)):
            raise _only_onnx(self.to, "a recurrent model")
        search = here.Search.of(task, sizes)
        if self.to == "hf":
            hf.write(task, model, config, folder)
            return here.Translator(task, model, search), hf.Engine(folder, task, search)
        ct2.write(task, model, config, folder, int8=int8)
        ours = here.Translator(task, model, search, closes_first=True)
        return ours, ct2.Engine(folder, search, int8=int8)

    def _bleu(self, found: Comparison) -> tuple[float, float] | None:
        if self.references is None or not isinstance(self.task, Translate):
            return None
        tokenize, references = self.task.config.bleu_tokenize, self.references

        def scored(answers: Sequence[Answer]) -> float:
            return TextTally.of(tokenize, [answer.text for answer in answers], references).metrics()["bleu"]

        return scored(found.answers_here), scored(found.answers_there)

    def _notes(self, found: Comparison) -> list[str]:
        n_texts, n_cut = len(self.texts), len(self.texts) - found.n_whole
        few = f"checked on {n_texts} texts only; {ENOUGH} or more say more"
        cut = f"{n_cut} answers did not end by themselves; only their probabilities were compared"
        return [note for note, holds in ((few, n_texts < ENOUGH), (cut, n_cut > 0)) if holds]


def refuse_others(task: AnyTask, to: str) -> None:
    """RunError for a task whose models cannot leave yet, or not for there."""
    if isinstance(task, Tag):
        raise RunError(f"{to}: taggers are not exported yet; regard serve answers over HTTP")
    if isinstance(task, LanguageModel) and to != "hf":
        raise RunError(f"{to}: a language model leaves for Hugging Face only; export to hf")
    leave = Translate | Classify | Pretrain | LanguageModel
    if isinstance(task, Relation | ClassifyPair) or not isinstance(task, leave):
        raise RunError(f"{to}: {task.kind} models cannot leave yet; serve them with regard serve")


def _only_onnx(to: str, what: str) -> RunError:
    where = {"hf": "Hugging Face's models", "ct2": "CTranslate2"}[to]
    return RunError(f"{to}: {what} has no counterpart in {where}; export to onnx")

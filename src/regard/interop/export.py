"""Export to another engine: written, loaded there, and checked to answer as our model does, or removed.

`hf.write`, `ct2.write` and the others only write the folder; `export` adds the parity check.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from safetensors import SafetensorError
from torch import nn

from regard import durable
from regard.attention import sites
from regard.errors import RunError
from regard.files.row import Asked
from regard.interop import continuation_parity
from regard.interop.generation_config import dropped_settings
from regard.interop.parity import (
    RECOMMENDED_INPUTS,
    Answer,
    Comparison,
    Report,
    Tick,
    compare,
    require_parity,
)
from regard.interop.targets import Export, Exporter, Target, find_exporter
from regard.models import ModelConfig
from regard.tasks import AnyTask, LanguageModel, Translate
from regard.tasks.task import evaluating
from regard.tasks.translate import TextTally

__all__ = ["Report", "Target", "export", "find_exporter"]


def export(
    task: AnyTask,
    model: nn.Module,
    config: ModelConfig,
    folder: Path,
    to: str,
    texts: Sequence[Asked],
    *,
    references: Sequence[str] | None = None,
    int8: bool = False,
    tick: Tick = lambda done: None,
) -> Report:
    """Write `folder` for another engine and check it on `texts`; RunError, and no folder, if they differ.

    A text is a mapping for a task with several inputs. `references`, one per text, give int8 a BLEU score on
    both sides.
    """
    exporter = find_exporter(task, to)
    if int8 and to != "ct2":
        raise RunError(f"{to}: int8 is only available for ct2; drop --int8, or export to ct2")
    scopes = sorted({site.scope for site in sites(model).values()} - {""})
    if scopes:
        raise RunError(
            f"{to}: no other engine has attention with a reach of its own ({scopes[0]}); "
            "export a model that was trained without model.reach"
        )
    if folder.exists() or folder.is_symlink():
        raise RunError(f"{folder}: already exists; choose another folder, or delete it")
    examples = task.encode(task.asked(texts))
    usable = [i for i, example in enumerate(examples) if task.is_answerable(example)]
    if not usable:
        raise RunError(f"{to}: an export is checked on texts, and there are none; give some")
    kept_references = None if references is None else [references[i] for i in usable]
    job = _Job(
        task,
        model,
        config,
        exporter,
        [texts[i] for i in usable],
        kept_references,
        tick,
        dropped_settings(task, to),
    )
    reports: list[Report] = []

    def fill(partial: Path) -> None:
        if int8:  # first without rounding, as only then a difference means a bug
            exact = partial / "exact"
            exact.mkdir()
            job.run(exact)
            durable.clear(exact)
        reports.append(job.run(partial, int8=int8))

    try:
        with evaluating(model):
            durable.write_folder(folder, fill)
    except (OSError, SafetensorError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise RunError(f"{folder}: cannot be written ({why}); make room, or choose another") from None
    return replace(reports[0], folder=folder)


class _Job:
    """One export: writes the folder and compares both engines."""

    def __init__(
        self,
        task: AnyTask,
        model: nn.Module,
        config: ModelConfig,
        exporter: Exporter,
        texts: list[Asked],
        references: list[str] | None,
        tick: Tick,
        dropped: list[str],
    ) -> None:
        self.task, self.model, self.config, self.exporter = task, model, config, exporter
        self.texts, self.references, self.tick, self.dropped = texts, references, tick, dropped
        if isinstance(task, LanguageModel):
            self.texts = [*continuation_parity.prompts(task, list(map(str, texts)))]

    def run(self, folder: Path, *, int8: bool = False) -> Report:
        examples = self.task.encode(self.task.asked(self.texts))
        sizes = [self.task.size(example)[0] for example in examples]
        ours, theirs = self.exporter(Export(self.task, self.model, self.config, sizes, int8), folder)
        comparison = compare(ours, theirs, self.texts, sizes, self.tick)
        if not int8:
            require_parity(comparison, theirs.name)
        return Report(
            folder,
            theirs.name,
            len(self.texts),
            comparison.n_complete,
            comparison.identical,
            comparison.difference,
            comparison.our_speed,
            comparison.their_speed,
            sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()),
            bleu=self._bleu(comparison) if int8 else None,
            notes=tuple(self._notes(comparison)),
        )

    def _bleu(self, comparison: Comparison) -> tuple[float, float] | None:
        if self.references is None or not isinstance(self.task, Translate):
            return None
        tokenize, references = self.task.config.bleu_tokenize, self.references

        def bleu(answers: Sequence[Answer]) -> float:
            return TextTally.of(tokenize, [answer.text for answer in answers], references).metrics()["bleu"]

        return bleu(comparison.our_answers), bleu(comparison.their_answers)

    def _notes(self, comparison: Comparison) -> list[str]:
        n_texts, n_truncated = len(self.texts), len(self.texts) - comparison.n_complete
        few = f"checked on {n_texts} texts only; use {RECOMMENDED_INPUTS} or more for a reliable check"
        truncated = f"{n_truncated} answers hit the length limit; only their probabilities were compared"
        settings = ", ".join(f"decode.{name}" for name in self.dropped)
        dropped = f"not exported, as the target engine has no equivalent: {settings}"
        notes = (few, n_texts < RECOMMENDED_INPUTS), (truncated, n_truncated > 0), (dropped, settings != "")
        return [note for note, applies in notes if applies]

"""A model leaves for another engine: written, loaded there, and proven to answer as it does here, or removed.

`hf.write`, `ct2.write` and the others make the folder and nothing more; `export` adds the proof.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from safetensors import SafetensorError
from torch import nn

from regard import durable
from regard.errors import RunError
from regard.files.row import Asked, rows_of
from regard.interop import continuing
from regard.interop.parity import ENOUGH, Answer, Comparison, Report, Tick, compare, require
from regard.interop.searching import unsaid
from regard.interop.ways import Goal, Leaving, Way, way
from regard.models import ModelConfig
from regard.tasks import AnyTask, LanguageModel, Translate
from regard.tasks.task import evaluating
from regard.tasks.translate import TextTally

__all__ = ["Goal", "Report", "export", "way"]


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
    """Write `folder` for another engine and prove it on `texts`; RunError, and no folder, if they differ.

    A text is a mapping for a task with several inputs. `references`, as many as texts, give int8 a BLEU on
    both sides.
    """
    leave = way(task, to)
    if int8 and to != "ct2":
        raise RunError(f"{to}: has no int8 here; export to ct2 for that")
    if folder.exists() or folder.is_symlink():
        raise RunError(f"{folder}: already exists; choose another folder, or delete it")
    examples = task.encode(rows_of(texts, *task.inputs))
    asked = [i for i, example in enumerate(examples) if task.usable_input(example)]
    if not asked:
        raise RunError(f"{to}: an export is checked on texts, and there are none; give some")
    told = None if references is None else [references[i] for i in asked]
    job = _Job(task, model, config, leave, [texts[i] for i in asked], told, tick, unsaid(task, to))
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
        leave: Way,
        texts: list[Asked],
        references: list[str] | None,
        tick: Tick,
        unsaid: list[str],
    ) -> None:
        self.task, self.model, self.config, self.leave = task, model, config, leave
        self.texts, self.references, self.tick, self.unsaid = texts, references, tick, unsaid
        if isinstance(task, LanguageModel):
            self.texts = [*continuing.prompts(task, list(map(str, texts)))]

    def prove(self, folder: Path, *, int8: bool = False) -> Report:
        examples = self.task.encode(rows_of(self.texts, *self.task.inputs))
        sizes = [self.task.size(example)[0] for example in examples]
        ours, theirs = self.leave(Leaving(self.task, self.model, self.config, sizes, int8), folder)
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
        unsaid = ", ".join(f"decode.{name}" for name in self.unsaid)
        lost = f"not in the folder, as nothing there means the same: {unsaid}; answers are found without"
        told = (few, n_texts < ENOUGH), (cut, n_cut > 0), (lost, unsaid != "")
        return [note for note, holds in told if holds]

"""What cannot leave is refused in one sentence, before anything is written."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from regard.errors import RunError
from regard.fields.series import Series
from regard.interop.targets import EXPORTERS, Export


@pytest.mark.parametrize("kind", ["classify", "multilabel"])
@pytest.mark.parametrize("target", ["hf", "onnx"])
def test_classifiers_of_other_kinds_stay(tmp_path: Path, kind: str, target: str) -> None:
    task = SimpleNamespace(input=None, given={"series": Series})
    with pytest.raises(
        RunError, match=r"^a classifier of series cannot be exported yet, only those of texts"
    ):
        EXPORTERS[kind, target](Export(task, None, None, ()), tmp_path)  # type: ignore[index]
    assert not list(tmp_path.iterdir())

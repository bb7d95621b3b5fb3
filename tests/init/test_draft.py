"""The first recipe somebody gets for their data."""

import tomllib
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.files.columns import Column
from regard.files.row import Row
from regard.init.draft import draft
from regard.init.guess import Guess
from regard.init.plan import Plan, Script, script
from regard.init.toml import toml
from regard.recipe import Recipe
from regard.training.machine import Machine

LAPTOP = Machine(cores=2, memory=8_000_000_000, gpu=False)
SERVER = Machine(cores=32, memory=256_000_000_000, gpu=True)


def guess(task: str = "translate", n_rows: int = 30_000, length: int = 20, **changes: object) -> Guess:
    roles = ("source", "target") if task == "translate" else ("text", "label")
    columns: dict[str, Column | None] = dict.fromkeys(roles)
    told: dict[str, object] = {
        "task": task,
        "train": ("train.tsv",),
        "valid": None,
        "test": None,
        "columns": columns,
        "n_rows": n_rows,
        "sample": (Row(dict.fromkeys(roles, "x"), "train.tsv", 1),),
        "lengths": dict.fromkeys(roles, (length, 3 * length)),
        "reasons": (),
    }
    return Guess(**told | changes)  # type: ignore[arg-type]


def drafted(found: Guess, scripts: Mapping[str, Script], machine: Machine = LAPTOP) -> Recipe:
    return Recipe.parse(tomllib.loads(draft(Plan(found, scripts, machine), "runs/x")))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("今天天气很好。OK", "Chinese"),
        ("今日は天気がいいですね。", "Japanese"),
        ("東京都知事", "Chinese"),
        ("오늘 날씨가 좋네요", "Korean"),
        ("Guten Tag, Übermut!", "Latin"),
        ("Сегодня хорошая погода", "other"),
        ("123 … !", "other"),
        ("", "other"),
    ],
)
def test_scripts(text: str, expected: str) -> None:
    assert script([text]) == expected


def test_chinese_output_is_scored_as_chinese() -> None:
    recipe = drafted(guess(), {"source": "Latin", "target": "Chinese"})
    assert recipe.task.kind == "translate"
    assert recipe.task.bleu_tokenize == "zh"
    assert recipe.task.joint is False


def test_one_script_is_one_vocabulary() -> None:
    recipe = drafted(guess(), {"source": "Latin", "target": "Latin"})
    assert recipe.task.kind == "translate"
    assert recipe.task.bleu_tokenize == "13a"
    assert recipe.task.joint is True


def test_characters_need_room() -> None:
    few = guess(n_rows=500)
    assert drafted(few, {"source": "Chinese", "target": "Latin"}).task.tokenizer.vocab_size == 4_000
    assert drafted(few, {"source": "Latin", "target": "Latin"}).task.tokenizer.vocab_size == 2_000


@pytest.mark.parametrize(
    ("labels", "none"),
    [(("works_for", "NO_RELATION"), "NO_RELATION"), (("任职", "无"), "无"), (("Other", "none"), "Other")],
)
def test_the_label_of_no_relation_is_known_by_its_name(labels: tuple[str, ...], none: str) -> None:
    rows = tuple(Row({"text": "x", "label": label}, "train.tsv", 1) for label in labels)
    recipe = drafted(guess("relation", sample=rows), {"text": "Latin"})
    assert recipe.task.kind == "relation"
    assert recipe.task.no_relation == none
    assert drafted(guess("relation"), {"text": "Latin"}).task == recipe.task.model_copy(
        update={"no_relation": "Other"}
    )


@pytest.mark.parametrize("task", ["translate", "classify"])
@pytest.mark.parametrize("machine", [LAPTOP, SERVER, Machine(1, 500_000_000, False)])
@pytest.mark.parametrize("n_rows", [2, 700, 30_000, 400_000, 50_000_000])
@pytest.mark.parametrize("length", [0, 9, 5_000])
def test_every_draft_is_a_recipe(task: str, machine: Machine, n_rows: int, length: int) -> None:
    scripts: dict[str, Script] = (
        {"source": "Chinese", "target": "Latin"} if task == "translate" else {"text": "other"}
    )
    assert drafted(guess(task, n_rows, length), scripts, machine).task.kind == task


def test_more_data_and_a_gpu_mean_a_larger_model() -> None:
    def plan(n_rows: int, machine: Machine) -> Plan:
        return Plan(guess(n_rows=n_rows), {"source": "Latin", "target": "Latin"}, machine)

    assert [plan(n, LAPTOP).preset for n in (1_000, 200_000, 5_000_000)] == ["tiny", "small", "small"]
    assert [plan(n, SERVER).preset for n in (1_000, 200_000, 5_000_000)] == ["tiny", "small", "base"]
    assert (
        plan(1_000, LAPTOP).batch_tokens
        < plan(200_000, LAPTOP).batch_tokens
        < plan(5_000_000, SERVER).batch_tokens
    )
    assert plan(200_000, LAPTOP).accumulate == 1
    assert plan(200_000, Machine(2, 1_000_000_000, False)).accumulate > 1


Values = st.recursive(
    st.text() | st.integers(-(2**40), 2**40) | st.booleans() | st.floats(1e-9, 1e9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(Values)
def test_toml_reads_what_is_written(value: object) -> None:
    read = tomllib.loads(f"value = {toml(value)}")["value"]
    assert read == pytest.approx(value, rel=0.1) if isinstance(value, float) else _close(read, value)


def _close(read: object, value: object) -> bool:
    if isinstance(value, dict) and isinstance(read, dict):
        return read.keys() == value.keys() and all(_close(read[key], value[key]) for key in value)
    if isinstance(value, list) and isinstance(read, list):
        return len(read) == len(value) and all(map(_close, read, value))
    return read == (pytest.approx(value, rel=0.1) if isinstance(value, float) else value)

"""recommend: what is learnt, asked and scored, against one history at a time."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from regard.data.histories import WindowedHistories
from regard.data.layout import scored
from regard.decode import in_order
from regard.errors import DataError, RecipeError
from regard.explain.replay import explain
from regard.files.catalogue import Described
from regard.files.row import Row
from regard.models import BERT4RecConfig, GRU4RecConfig, SASRecConfig
from regard.recipe import Recipe
from regard.tasks import Recommend, RecommendConfig
from regard.training.evaluate import evaluate
from tiny import stirred

N_ITEMS = 19
SMALL: dict[str, Any] = {"d_model": 8, "n_heads": 2, "d_ff": 11, "n_layers": 1, "max_positions": 13}
MODELS = {
    "sasrec": (SASRecConfig(**SMALL), "next"),
    "gru4rec": (GRU4RecConfig(d_model=8, d_hidden=7, attention=True), "next"),
    "bert4rec": (BERT4RecConfig(**SMALL), "masked"),
}
each = pytest.mark.parametrize("name", MODELS)


def rows(n: int = 13, seed: int = 0) -> list[Row]:
    rng = np.random.default_rng(seed)
    return [
        Row(
            {"user": f"u{h}", "items": [f"i{item}" for item in rng.permutation(N_ITEMS)[: 2 + h % 11]]},
            "file",
            h + 1,
        )
        for h in range(n)
    ]


def made(name: str, **settings: Any) -> tuple[Recommend, nn.Module]:
    config, objective = MODELS[name]
    task = Recommend.fit(
        RecommendConfig(**{"max_length": 7, "objective": objective, "k": 5} | settings),
        rows(60, seed=1),
        described={"i3": Described("The third", "odd")},
    )
    assert len(task.items.names) == N_ITEMS
    return task, stirred(config.build(task.widths)).eval()


def scores(task: Recommend, model: nn.Module, items: list[str]) -> torch.Tensor:
    """Of every item after a history, the slow way: one row, all logits."""
    numbers = [task.items.numbers[item] for item in items][-7:]
    if task.config.objective == "masked":
        numbers = [*numbers[-6:], task.mask]
    inputs = {
        "items": torch.tensor([numbers]),
        "times": torch.zeros(1, len(numbers)),
        "lengths": torch.tensor([len(numbers)]),
    }
    with torch.no_grad():
        logits: torch.Tensor = model(inputs, torch.tensor([len(numbers) - 1]))
    return logits[0]


@each
@pytest.mark.parametrize("remove_seen", [True, False])
def test_scored_as_one_by_one(name: str, remove_seen: bool) -> None:
    task, model = made(name, remove_seen=remove_seen)
    metrics, tally = evaluate(task, model, scored(task, rows(), "rows"), torch.device("cpu"), thorough=True)
    ranks, nats = [], []
    for row, answer in zip(rows(), tally.answers, strict=True):  # type: ignore[attr-defined]
        *history, target = row.cells["items"]
        logits = scores(task, model, history)
        nats.append(-float(torch.log_softmax(logits, 0)[task.items.numbers[target]]))
        assert answer.nats == pytest.approx(nats[-1], rel=1e-4)
        if remove_seen:
            logits[[task.items.numbers[item] for item in history]] = -torch.inf
        best = logits.argsort(descending=True).tolist()
        assert list(answer.top) == best[: min(5, N_ITEMS - remove_seen * len(history))]
        assert answer.rank == best.index(task.items.numbers[target]) + 1
        ranks.append(answer.rank)
    assert metrics["loss"] == pytest.approx(np.mean(nats), rel=1e-4)
    assert metrics["hr@5"] == pytest.approx(100 * np.mean([rank <= 5 for rank in ranks]))


@each
def test_what_is_recommended_is_what_is_scored(name: str) -> None:
    task, model = made(name, k=3)
    asked = task.asked([" ".join(row.cells["items"]) for row in rows()])
    answers = in_order(task.predict(model, task.collate(task.encode(asked))))
    for row, answer in zip(rows(), answers, strict=True):
        log_prob_V = torch.log_softmax(scores(task, model, row.cells["items"]), 0)
        allowed_V = log_prob_V.clone()
        allowed_V[[task.items.numbers[item] for item in row.cells["items"]]] = -torch.inf
        best = allowed_V.argsort(descending=True)[:3]
        assert [one.item for one in answer.items] == [task.items.names[n] for n in best]
        assert [one.rank for one in answer.items] == [1, 2, 3]
        assert [one.score for one in answer.items] == pytest.approx(log_prob_V[best].tolist(), abs=1e-4)
        assert answer.text == ", ".join(task.items.title(one.item) for one in answer.items)


@each
def test_alone_as_in_a_batch(name: str) -> None:
    task, model = made(name)
    examples = task.encode(task.asked([" ".join(row.cells["items"]) for row in rows()]))
    together = in_order(task.predict(model, task.collate(examples)))
    for example, among in zip(examples, together, strict=True):
        (alone,) = in_order(task.predict(model, task.collate([example])))
        assert [one.item for one in alone.items] == [one.item for one in among.items]
        assert [one.score for one in alone.items] == pytest.approx(
            [one.score for one in among.items], abs=1e-5
        )


@each
def test_the_loss_is_that_of_every_target(name: str) -> None:
    """In the windows of the training data, whatever batches they come in."""
    task, model = made(name)
    examples = WindowedHistories.of(task, rows()).in_epoch(3, 1)
    whole = task.collate([examples[i] for i in range(len(examples))])
    total = task.loss(model, whole).parts["items"].sum
    assert whole.counts == {"items": sum(int((one.arrays["targets"] >= 0).sum()) for one in whole.examples)}
    parts = [task.loss(model, task.collate([examples[i]])).parts["items"].sum for i in range(len(examples))]
    torch.testing.assert_close(total, torch.stack(parts).sum(), rtol=1e-4, atol=1e-4)
    if name != "bert4rec":
        by_hand = sum(
            -torch.log_softmax(scores(task, model, row.cells["items"][:n]), 0)[
                task.items.numbers[row.cells["items"][n]]
            ]
            for row in rows()
            for n in range(1, len(row.cells["items"]))
            if len(row.cells["items"]) <= 8  # of a longer one the first window begins anew
        )
        short = [i for i in range(len(examples)) if len(rows()[examples.row(i).line - 1].cells["items"]) <= 8]
        batch = task.collate([examples[i] for i in short])
        torch.testing.assert_close(task.loss(model, batch).parts["items"].sum, by_hand, rtol=1e-4, atol=1e-4)


@each
@pytest.mark.parametrize(
    "loss", [{"kind": "sampled_softmax", "negatives": 7}, {"kind": "gbce", "negatives": 3}]
)
def test_sampled_losses_are_the_same_for_the_same_seed(name: str, loss: dict[str, Any]) -> None:
    task, model = made(name, loss=loss)
    examples = WindowedHistories.of(task, rows()).in_epoch(3, 1)
    batch = task.collate([examples[i] for i in range(5)])
    found = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        found.append(float(task.loss(model, batch).parts["items"].sum.detach()))
    assert found[0] == found[1] != found[2]


@each
def test_without_an_item_is_as_if_it_had_never_been(name: str) -> None:
    task, model = made(name)
    (example,) = task.encode(task.asked(["i1 i4 i2 i9 i5"]))
    (answer,) = in_order(task.predict(model, task.collate([example])))
    batch = task.force(example, answer)
    axes = task.axes(example, answer)
    history = axes.by_name["history"]
    units = history.free
    assert [history.labels[unit] for unit in units] == ["i1", "i4", "i2", "i9", "i5"]
    with torch.no_grad():
        found = task.replay(model, task.leave_out(batch, history, units))
        kept = task.replay(model, batch)
    best = task.items.numbers[answer.items[0].item]
    items = ["i1", "i4", "i2", "i9", "i5"]
    for unit in range(len(items)):
        without = scores(task, model, items[:unit] + items[unit + 1 :])
        torch.testing.assert_close(found[unit, 0], torch.log_softmax(without, 0)[best], rtol=1e-4, atol=1e-4)
    whole = torch.log_softmax(scores(task, model, items), 0)[best]
    torch.testing.assert_close(kept[0, 0], whole, rtol=1e-4, atol=1e-4)


@each
def test_the_reasons_of_a_recommendation_are_what_it_loses_without_each(name: str) -> None:
    task, model = made(name, k=3, because=5)
    items = ["i1", "i4", "i2", "i9", "i5"]
    ((_, answer),) = task.predict(model, task.collate(task.encode(task.asked([items]))))
    for one in answer.items:
        wanted = task.items.numbers[one.item]
        right = []
        for left_out in items:
            log_prob_V = torch.log_softmax(scores(task, model, [i for i in items if i != left_out]), 0)
            allowed_V = log_prob_V.clone()
            allowed_V[[task.items.numbers[item] for item in items]] = -torch.inf
            rank = allowed_V.argsort(descending=True).tolist().index(wanted) + 1
            right.append((left_out, one.score - float(log_prob_V[wanted]), rank))
        right = sorted((each for each in right if each[1] > 0), key=lambda each: -each[1])
        assert [(reason.item, reason.rank) for reason in one.because] == [(i, r) for i, _, r in right]
        assert [reason.change for reason in one.because] == pytest.approx([c for _, c, _ in right], abs=1e-4)


@each
def test_an_item_that_is_asked_about_stands_in_the_list_with_its_place(name: str) -> None:
    task, model = made(name, k=2)
    items = ["i1", "i4", "i2"]
    whole = task.with_settings(k=100)
    ((_, everything),) = whole.predict(model, whole.collate(whole.encode(whole.asked([items]))))
    for one in everything.items:
        about = task.with_settings(item=one.item)
        ((_, answer),) = about.predict(model, about.collate(about.encode(about.asked([items]))))
        found = answer.items[answer.explained]
        assert (found.item, found.rank) == (one.item, one.rank)
        assert found.score == pytest.approx(one.score, abs=1e-5)
        assert len(answer.items) == (2 if one.rank <= 2 else 3)


def test_an_explanation_tells_the_places_without_items() -> None:
    task, model = made("sasrec")
    (row,) = task.asked(["i1 i4 i2 i3 i5"])
    found = explain(task, model, "sasrec", row, torch.device("cpu"))
    assert found.input == "i1, i4, i2, The third, i5"
    assert found.trust is not None
    assert "The recommendation stands at place 1" in found.trust.sentence
    assert "这条推荐排在第 1 位" in (found.trust.in_chinese or "")


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"item": "i77"}, "item: item 'i77' is not in the catalogue of the training data"),
        ({"beam": 3}, "beam: a recommender can be asked with k, remove_seen, because and item"),
        ({"k": 0}, "k: '0' should be greater than or equal to 1"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], fault: str) -> None:
    task, _ = made("sasrec")
    with pytest.raises((DataError, RecipeError), match=fault):
        task.with_settings(**settings)


def test_titles_and_unknown_items_are_told() -> None:
    task, model = made("sasrec", k=N_ITEMS)
    (row,) = task.asked([["i1", "never seen", "i2"]])
    (answer,) = in_order(task.predict(model, task.collate(task.encode([row]))))
    assert answer.unknown == ("never seen",)
    (third,) = [one for one in answer.items if one.item == "i3"]
    assert (third.title, third.category) == ("The third", "odd")
    assert "The third" in answer.text


def test_more_than_the_catalogue_gives_all_that_was_not_seen() -> None:
    task, model = made("sasrec", k=100)
    (answer,) = in_order(task.predict(model, task.collate(task.encode(task.asked(["i1 i2"])))))
    assert len(answer.items) == N_ITEMS - 2
    again = task.with_settings(k=4, remove_seen=False)
    (answer,) = in_order(again.predict(model, again.collate(again.encode(again.asked(["i1 i2"])))))
    assert len(answer.items) == 4


def test_what_is_seen_includes_what_is_too_old_to_be_read() -> None:
    task, model = made("sasrec", k=N_ITEMS)
    items = [f"i{n}" for n in range(12)]
    (answer,) = in_order(task.predict(model, task.collate(task.encode(task.asked([items])))))
    assert {one.item for one in answer.items}.isdisjoint(items)


def test_cold_items_and_users_are_misses_not_faults() -> None:
    """A target, or a whole history, that training never saw."""
    task, model = made("sasrec")
    cold = [
        Row({"user": "a", "items": ["i1", "new"]}, "file", 1),
        Row({"user": "b", "items": ["new", "newer", "i2"]}, "file", 2),
    ]
    metrics, tally = evaluate(task, model, scored(task, cold, "rows"), torch.device("cpu"), thorough=True)
    first, second = tally.answers  # type: ignore[attr-defined]
    assert first.rank == N_ITEMS
    assert 1 <= second.rank <= N_ITEMS
    assert np.isfinite(metrics["ndcg@5"])
    assert metrics["loss"] == pytest.approx(second.nats), "what has no probability has no cost"


@pytest.mark.parametrize(
    ("asked", "fault"),
    [
        ("nothing known", "input 1: none of its 2 items is in the catalogue of the training data"),
        ("", "input 1: the history is empty; give at least one item"),
        (7, "input 1: the items is a number"),
    ],
)
def test_what_cannot_be_asked(asked: Any, fault: str) -> None:
    task, _ = made("sasrec")
    with pytest.raises(DataError, match=fault):
        task.asked([asked])


def test_saved_and_loaded(tmp_path: Path) -> None:
    task, _ = made("sasrec")
    task.save(tmp_path)
    assert Recommend.load(task.config, tmp_path).items == task.items


def test_times_are_read_where_they_are_known() -> None:
    task, _ = made("sasrec")
    row = replace(rows()[5], cells=rows()[5].cells | {"times": [1.0, 5, 9, 10, 30, 70, 80]})
    (example,) = task.tested([row])
    batch = task.collate([example])
    assert batch.inputs["times"].tolist() == [[1.0, 5, 9, 10, 30, 70]]


RECIPE: dict[str, Any] = {
    "task": {"kind": "recommend"},
    "data": {"train": "ratings.csv"},
    "model": {"kind": "sasrec"},
}


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        (
            {"model": {"kind": "bert4rec"}},
            "task.objective: bert4rec learns to fill in hidden items; set it to 'masked'",
        ),
        (
            {"task": {"kind": "recommend", "objective": "masked"}},
            "task.objective: sasrec learns what comes next",
        ),
        ({"task": {"kind": "recommend", "max_length": 300}}, "max_positions leaves room for 255"),
        ({"data": {"train": "a.csv", "columns": {"title": "name"}}}, "data.columns.title: unknown"),
        ({"data": {"train": "a.csv", "title_columns": {"user": 1}}}, "data.title_columns.user: unknown"),
        ({"fields": {"items": {"min_users": 3}}}, "fields.items.min_users: unknown; did you mean min_user"),
        ({"task": {"kind": "recommend", "loss": {"kind": "bpr"}}}, "task.loss.kind: unknown 'bpr'"),
        ({"model": {"kind": "gpt"}}, "cannot use model 'gpt'; use sasrec or bert4rec or gru4rec"),
    ],
)
def test_recipes_that_contradict_themselves(changes: dict[str, Any], fault: str) -> None:
    with pytest.raises(RecipeError, match=fault):
        Recipe.parse(RECIPE | changes)


def test_only_items_have_titles() -> None:
    with pytest.raises(
        RecipeError, match=r"data\.titles: is for items, which the " r"task 'translate' does not have"
    ):
        Recipe.parse(
            {
                "task": {"kind": "translate"},
                "data": {"train": ["a.de", "a.en"], "titles": "b.csv"},
                "model": {"kind": "transformer"},
            }
        )

"""recommend as its user meets it: from a raw table of ratings, and a file of titles, to recommendations."""

import json
from pathlib import Path

import pytest

import regard
from small_runs import Call, write_ratings

SMALL = ["model.d_model=8", "model.n_heads=2", "model.d_ff=11", "model.n_layers=1", "train.max_steps=9"]
SMALL += ["train.eval_every=3", "train.threads=1", "train.warmup=0", "task.max_length=8"]
TITLES = "item_id,title,genres\n" + "".join(f'item {n},"The {n}th, or 电影",odd\n' for n in range(10))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a trained recommender; not to be changed."""
    folder = tmp_path_factory.mktemp("shop")
    write_ratings(folder / "ratings.csv", 40)
    (folder / "films.csv").write_text(TITLES, "utf-8")
    return folder


@pytest.fixture
def run(shop: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(shop)
    if not (shop / "recipe.toml").exists():
        assert call("init", "ratings.csv", "films.csv").exit_code == 0
        settings = SMALL
        assert call("train", "recipe.toml", *settings).exit_code == 0
    return Path("runs/ratings")


def test_from_raw_ratings_and_titles(call: Call, run: Path) -> None:
    recipe = Path("recipe.toml").read_text("utf-8")
    assert 'titles = "films.csv"' in recipe
    assert 'columns = { user = "user_id", item = "item_id", rating = "rating", time = "timestamp" }' in recipe
    checked = call("check", "recipe.toml")
    assert checked.exit_code == 0, checked.stdout
    assert "1 of 11 items have no title: 'item 10'" in checked.stdout
    assert "interactions of 40 users, 11 items" in checked.stdout
    stored = json.loads((run / "model" / "metrics.json").read_text("utf-8"))
    assert set(stored["baselines"]["scores"]) == {
        "most popular",
        "recently popular",
        "Markov chain",
        "item-kNN",
    }


def test_the_held_out_test_is_scored_again(call: Call, run: Path) -> None:
    stored = json.loads((run / "model" / "metrics.json").read_text("utf-8"))
    found = json.loads(call("eval", run, "--json").stdout)
    assert found["rows"] == 37  # of 40 users have three items or more in the 5-core
    assert found["scores"] == pytest.approx(stored["scores"]["test"])
    assert found["intervals"] == stored["intervals"]["test"]


def test_two_are_compared_on_the_held_out_test(call: Call, run: Path) -> None:
    settings = SMALL
    assert call("train", "recipe.toml", *settings, "run=runs/other", "seed=2").exit_code == 0
    found = json.loads(call("eval", run, "runs/other", "--json").stdout)
    assert {"ndcg@10", "hr@10", "mrr@10"} <= set(found["differences"])
    assert found["runs"][str(run)]["rows"] == 37


def test_a_history_that_nobody_had(call: Call, run: Path) -> None:
    answer = json.loads(call("predict", run, '["item 1", "item 2"]', "--json", "--set", "k=3").stdout)
    assert len(answer["items"]) == 3
    assert {one["item"] for one in answer["items"]}.isdisjoint({"item 1", "item 2"})
    trained = regard.load(run)
    assert [one.item for one in trained.predict([["item 1", "item 2"]], k=3)[0].items] == [
        one["item"] for one in answer["items"]
    ]


@pytest.mark.parametrize(
    ("titles", "fault"),
    [
        ("id,name\nx,A\n", "data.titles: names none of the 11 items"),
        ("item_id,name\n", "films.csv: holds no records"),
        ("item_id,colour\nitem 1,red\n", "films.csv: no column named like title; there are item_id, colour"),
    ],
)
def test_titles_that_are_none(call: Call, home: Path, titles: str, fault: str) -> None:
    write_ratings(home / "ratings.csv", 20)
    (home / "films.csv").write_text(titles, "utf-8")
    (home / "recipe.toml").write_text(
        '[task]\nkind="recommend"\n[data]\ntrain="ratings.csv"\ntitles="films.csv"\n'
        + ('title_columns = { item = "id" }\n' if titles.startswith("id") else "")
        + '[model]\nkind="sasrec"\n',
        "utf-8",
    )
    for verb in ("train", "check"):
        result = call(verb, "recipe.toml")
        assert result.exit_code == 2
        assert fault in result.stderr + result.stdout
    assert not Path("runs/run/identity.json").exists()


NOW = 1_700_000_000


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (["u,i,1"] * 3, "train: 1 row with a single item to learn from"),
        ([f"u{n % 7},i{n},{5_000_000_000}" for n in range(40)], "with a time that is yet to come"),
        ([f"u{n % 7},i{n % 9},{NOW}" for n in range(40)], "have the same time as the one before them"),
        ([f"u{n % 7},{n % 9}{'.0' * (n % 2)},{NOW + n}" for n in range(80)], "are written in two ways"),
        ([f"u{n % 7},i{n % 9},{NOW + n}" for n in range(40)] * 2, "stand in the files twice and count once"),
    ],
)
def test_check_tells_what_is_odd(call: Call, home: Path, rows: list[str], said: str) -> None:
    (home / "ratings.csv").write_text("\n".join(["user,item,time", *rows]) + "\n", "utf-8")
    (home / "recipe.toml").write_text(
        '[task]\nkind="recommend"\n[data]\ntrain="ratings.csv"\n[model]\nkind="sasrec"\nd_model=8\nd_ff=8\n',
        "utf-8",
    )
    shown = call("check", "recipe.toml").stdout
    assert said in " ".join(shown.split())


def test_without_times_the_order_decides_and_a_cut_in_time_is_refused(call: Call, home: Path) -> None:
    rows = [f"u{n % 7},i{n % 9}" for n in range(60)]
    (home / "ratings.csv").write_text("\n".join(["user,item", *rows]) + "\n", "utf-8")
    assert "No column holds times" in call("init", "ratings.csv").stdout
    assert "no column of times" in call("check", "recipe.toml").stdout
    result = call("train", "recipe.toml", "task.split=time")
    assert result.exit_code == 2
    assert "has no column of times, so that it cannot be cut at a moment" in result.stderr

"""A language model from a text file to its continuations, through kills, pages and HTTP."""

import itertools
import json
from pathlib import Path

import pytest

import regard
from regard.api.trained import Trained
from regard.errors import DataError, RecipeError, RunError
from regard.runs.prepare import prepare
from regard.training.events import Step
from served import served
from tiny import continuing, told

LEARNING = {"max_steps": 60, "eval_every": 30, "lr": 2e-2, "schedule": "constant", "batch_tokens": 480}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("text")


@pytest.fixture(scope="module")
def trained(folder: Path) -> Trained:
    return regard.train(continuing(folder, **LEARNING), quiet=True)


def test_it_learns_and_is_scored(trained: Trained, folder: Path) -> None:
    scores = trained.metrics["scores"]
    assert set(scores) == {"valid", "test"}
    assert set(scores["valid"]) == {"loss", "probability", "perplexity", "bits_per_char"}
    assert scores["test"]["loss"] < 2.5, "of 25 characters, all equally likely, each costs 3.2"
    events = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text("utf-8").splitlines()]
    samples = [event["samples"] for event in events if event["event"] == "evaluated"]
    assert samples[0][0].keys() == {"input", "expected", "answer"}
    again = trained.evaluate(str(folder / "test.txt"))
    assert again.metrics["loss"] == pytest.approx(scores["test"]["loss"], rel=1e-5)


def test_the_last_tenth_is_held_out_and_scored_whole(folder: Path, trained: Trained) -> None:
    text = told(211).removesuffix("\n")
    with prepare(continuing(folder, **LEARNING)) as run:
        valid = [token for block in run.training.valid for token in block.arrays["ids"][1:]]
        n_train = int(run.training.train.sizes.sum())
    assert trained.task.tokenizers["text"].decode(valid) == text[-(len(text) // 10) :]
    assert n_train == len(text) - len(text) // 10 + 1, "its end counted"


def test_an_interrupted_run_ends_with_the_same_bits(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    (tmp_path / "broken").mkdir()
    settings = {"max_steps": 60, "save_every": 7, "eval_every": 25}
    whole = continuing(tmp_path / "whole", **settings)
    regard.train(whole, quiet=True)
    broken = continuing(tmp_path / "broken", **settings)
    epochs = set()
    for stop_after in (10, 23, 100):
        with prepare(broken) as run:
            for number, event in enumerate(run.events()):
                epochs |= {event.epoch} if isinstance(event, Step) else set()
                if number == stop_after:
                    break
    assert len(epochs) > 1
    weights = [(tmp_path / name / "run/model/model.safetensors").read_bytes() for name in ("whole", "broken")]
    assert weights[0] == weights[1]


def test_a_prompt_is_continued(trained: Trained) -> None:
    (together, alone) = trained.predict(["cedar d", "amber birch"]), trained.predict("cedar d")
    assert together[0].text == alone.text
    assert len(alone.ids) == 29
    assert trained.predict("cedar d", beam=3).text != "", "searched, not drawn"
    parts = list(trained.follow("cedar d", seed=3))
    assert parts[-1] == trained.predict("cedar d", seed=3).text
    assert len(parts) > 5
    assert all(after.startswith(before) for before, after in itertools.pairwise(parts))


def test_the_search_can_be_looked_at(trained: Trained) -> None:
    tree = trained.beams("cedar d", beam=2, max_length=4)
    assert "cedar d" in tree.to_html()
    with pytest.raises(RecipeError, match="only a search with a beam of at least 2"):
        trained.beams("cedar d")


@pytest.mark.parametrize("documents", ["files", "lines"])
def test_it_explains_itself(documents: str, tmp_path: Path) -> None:
    trained = regard.train(continuing(tmp_path, documents=documents), quiet=True)
    explained = trained.explain("cedar", min_length=20)
    assert explained.sites == ["stack.layers.0.self", "stack.layers.1.self"]
    shown = explained.map("stack.layers.1.self")
    given = 5 + (documents == "lines")
    assert shown.columns.labels[given - 5 : given] == tuple("cedar")
    assert shown.weights_HQK.shape == (3, 12 + 1 - given, 12), "as much of the answer as a block holds"
    for row in range(len(shown.rows)):
        assert not shown.weights_HQK[:, row, given + row :].any(), "nothing that comes later"
    assert explained.trust is not None
    assert "Measured on this input" in explained.trust.sentence


def test_it_is_served(trained: Trained, folder: Path, tmp_path: Path) -> None:
    with served([folder / "run"], tmp_path / "log") as server:
        reply = server.post("/v1/generate", text=["cedar d", "amber"], decode={"seed": 5, "top_k": 4})
        expected = trained.predict(["cedar d", "amber"], seed=5, top_k=4)
        assert reply.json == {"model": "run", "answers": [one.to_json() for one in expected]}
        *parts, (last, final) = server.post("/v1/generate", text="cedar d", stream=True).events
        assert [data["text"] for _, data in parts] == list(trained.follow("cedar d"))
        assert (last, final["answer"]) == ("answer", trained.predict("cedar d").to_json())
        attention = server.post("/v1/generate", text="cedar d", attention=True).json["answers"][0][
            "attention"
        ]
        assert [one["heads"] for one in attention["maps"]] == [3, 3]
        long = server.post("/v1/generate", text="amber birch cedar")
        assert (long.status, long.code) == (422, "cannot_be_done")
        assert "this model reads 12 at most" in long.json["error"]["message"]
        other = server.post("/v1/translate", text="cedar", model="run")
        assert other.json["error"]["message"] == "the model 'run' is for /v1/generate; ask it there"


def test_attention_is_admitted_by_how_long_an_answer_may_get(
    trained: Trained, folder: Path, tmp_path: Path
) -> None:
    with served([folder / "run"], tmp_path / "log", limits={"explain_bytes": 40_000}) as server:
        assert server.post("/v1/explain", text="ce", decode={"max_length": 1}).status == 200
        reply = server.post("/v1/explain", text="ce", decode={"max_length": 29})
        assert (reply.status, reply.code) == (422, "too_much_attention")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", r"text\.txt: is empty"),
        ("\n \n\n", r"text\.txt: holds no records, only a header or blank lines"),
        ("abc", r"text\.txt: holds 4 tokens, fewer than one block of 12; give more text"),
    ],
)
def test_too_little_text_is_refused(text: str, said: str, tmp_path: Path) -> None:
    given = continuing(tmp_path)
    (tmp_path / "text.txt").write_text(text, "utf-8")
    with pytest.raises(DataError, match=said), prepare(given):
        pass
    assert not (tmp_path / "run" / "recipe.json").exists()


def test_it_leaves_for_hugging_face_only(trained: Trained, tmp_path: Path) -> None:
    assert trained.export(tmp_path / "hf", "hf", ["cedar", "amber birch"]).identical == 1.0
    for to in ("ct2", "onnx"):
        with pytest.raises(RunError, match=f"{to}: a language model can only be exported to Hugging Face"):
            trained.export(tmp_path / to, to, ["cedar"])


def test_a_model_has_positions_for_a_block(tmp_path: Path) -> None:
    given = continuing(tmp_path).model_dump()
    given["task"]["max_length"] = 13
    with pytest.raises(RecipeError, match=r"leaves room for 12 tokens, but task\.max_length is 13"):
        regard.Recipe.parse(given)
    given["model"]["kind"] = "transformer"
    with pytest.raises(RecipeError):
        regard.Recipe.parse(given)

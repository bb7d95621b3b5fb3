"""Recipes: what is understood, and how each misunderstanding is said."""

import json
from pathlib import Path
from typing import Any

import pytest

from regard.errors import RecipeError, did_you_mean
from regard.models import ClassifierConfig, TransformerConfig
from regard.recipe import MAX_BYTES, Recipe

TRANSLATE: dict[str, Any] = {
    "task": {"kind": "translate"},
    "data": {"train": ["a.en", "a.de"]},
    "model": {"kind": "transformer"},
}
CLASSIFY: dict[str, Any] = {
    "task": {"kind": "classify"},
    "data": {"train": "reviews.csv", "columns": {"label": 2}},
    "model": {"kind": "classifier", "encoder": {"kind": "rnn"}},
}

TOML = """
run = "runs/mine"  # where it goes
seed = 7
[task]
kind = "translate"
tokenizer = { kind = "char", vocab_size = 100 }
[data]
train = ["a.en", "a.de"]
[model]
kind = "transformer"
preset = "tiny"
d_ff = 300
[train]
max_steps = 1_000
lr = 1e-4
"""

COUNTED: dict[str, Any] = {
    "task": {"kind": "tag"},
    "data": {"train": "a.conll"},
    "model": {"kind": "hmm"},
}


def changed(recipe: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy with one setting more."""
    copy = json.loads(json.dumps(recipe))
    table = copy
    *tables, last = path.split(".")
    for name in tables:
        table = table.setdefault(name, {})
    table[last] = value
    return copy


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "recipe.toml"
    path.write_text(TOML, "utf-8")
    return path


def test_is_read_from_toml(path: Path) -> None:
    recipe = Recipe.read(path)
    assert (recipe.run, recipe.seed, recipe.train.lr, recipe.train.max_steps) == ("runs/mine", 7, 1e-4, 1000)
    assert isinstance(recipe.model, TransformerConfig)
    assert (recipe.model.d_model, recipe.model.d_ff) == (128, 300)
    assert recipe.task.tokenizer.kind == "char"
    assert recipe.columns() == {"source": None, "target": None}


def test_one_file_needs_no_list() -> None:
    recipe = Recipe.parse(CLASSIFY)
    assert recipe.data.train == ("reviews.csv",)
    assert recipe.columns() == {"text": None, "label": 2}
    assert isinstance(recipe.model, ClassifierConfig)


@pytest.mark.parametrize("given", [TRANSLATE, CLASSIFY, changed(TRANSLATE, "model.preset", "tiny")])
def test_what_a_run_folder_holds_is_read_back_the_same(given: dict[str, Any], tmp_path: Path) -> None:
    recipe = Recipe.parse(given)
    (tmp_path / "recipe.json").write_text(recipe.model_dump_json(), "utf-8")
    assert Recipe.read(tmp_path / "recipe.json") == recipe


@pytest.mark.parametrize(
    ("override", "value"),
    [
        ("seed=11", 11),
        ("train.lr=3e-4", 3e-4),
        ("train.max_minutes = 2.5", 2.5),
        ("model.n_heads=8", 8),
        ("model.norm=pre", "pre"),
        ('model.norm="pre"', "pre"),
        ("run=runs/my run, the second", "runs/my run, the second"),
        ("run=a=b", "a=b"),
        ("run=1.10", "1.10"),
        ("run=2026-11-17", "2026-11-17"),
        ('run="2026"', "2026"),
        ("data.valid=['b.en', 'b.de']", ("b.en", "b.de")),
        ("task.decode.beam=2", 2),
        ("task.joint=true", True),
        ("model.bias=false", False),
        ("data.test=c.tsv", ("c.tsv",)),
        ("data.columns.source=2", 2),
    ],
)
def test_overrides_are_toml_values_or_plain_text(path: Path, override: str, value: Any) -> None:
    found: Any = Recipe.read(path, [override])
    for name in override.split("=")[0].strip().split("."):
        found = found[name] if isinstance(found, dict) else getattr(found, name)
    assert found == value


def test_later_overrides_win(path: Path) -> None:
    assert Recipe.read(path, ["seed=3", "seed=5"]).seed == 5


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("seed", r"'seed': write an override as key=value, for example model\.n_heads=8"),
        ("=5", r"'=5': write an override as key=value"),
        ("model..n_heads=5", r"write an override as key=value"),
        ("seed.n=5", r"'seed\.n=5': seed is a value, not a table"),
        ("data.train.first=5", r"data\.train is a value, not a table"),
        ("model.n_haeds=8", r"model\.n_haeds: unknown; did you mean n_heads\?"),
        ("seed=soon", r"seed: 'soon' should be a valid integer"),
        ("seed=" + "[" * 50_000, r"seed"),
    ],
)
def test_overrides_that_cannot_be(path: Path, override: str, sentence: str) -> None:
    with pytest.raises(RecipeError, match=sentence):
        Recipe.read(path, [override])


UNKNOWN = [
    (TRANSLATE, "sede", "seed"),
    (TRANSLATE, "trian.lr", "train"),
    (TRANSLATE, "task.jiont", "joint"),
    (TRANSLATE, "task.tokenizer.vocabsize", "vocab_size"),
    (TRANSLATE, "task.decode.beams", "beam"),
    (TRANSLATE, "data.trian", "train"),
    (TRANSLATE, "data.columns.sorce", "source"),
    (TRANSLATE, "model.n_haeds", "n_heads"),
    (TRANSLATE, "train.max_step", "max_steps"),
    (changed(TRANSLATE, "model.kind", "rnn_seq2seq"), "model.atention", "attention"),
    (CLASSIFY, "task.label_smooth", "label_smoothing"),
    (CLASSIFY, "model.poling", "pooling"),
    (CLASSIFY, "model.encoder.cel", "cell"),
    (changed(CLASSIFY, "model.encoder.kind", "transformer"), "model.encoder.n_layer", "n_layers"),
    (changed(CLASSIFY, "model.encoder.kind", "words"), "model.encoder.dembed", "d_embed"),
]


@pytest.mark.parametrize(("recipe", "path", "near"), UNKNOWN, ids=[path for _, path, _ in UNKNOWN])
def test_an_unknown_key_is_said_with_the_nearest_right_one(
    recipe: dict[str, Any], path: str, near: str
) -> None:
    known = path.split(".")[0] if path == "trian.lr" else path
    with pytest.raises(
        RecipeError, match=rf"recipe: {known.replace('.', '[.]')}: unknown; did you mean {near}\?$"
    ):
        Recipe.parse(changed(recipe, path, 1))


def test_of_very_many_known_names_some_are_listed() -> None:
    told = did_you_mean("zzz" * 1000, [f"label {n} " + "x" * 1000 for n in range(3000)])
    assert told.endswith("… and 2,980 more")
    assert len(told) < 2000


def test_a_key_near_nothing_is_said_with_all_known_ones() -> None:
    with pytest.raises(
        RecipeError,
        match=r"data\.xyzzy: unknown; known: columns, encoding, fold, test, title_columns, titles, train",
    ):
        Recipe.parse(changed(TRANSLATE, "data.xyzzy", 1))


@pytest.mark.parametrize(
    ("recipe", "path", "value", "sentence"),
    [
        (TRANSLATE, "seed", "soon", r"seed: 'soon' should be a valid integer"),
        (TRANSLATE, "seed", -1, r"seed: -1 should be greater than or equal to 0"),
        (TRANSLATE, "seed", 2.5, r"seed: 2\.5 should be a valid integer"),
        (TRANSLATE, "run", "", r"run: '' is not the name of a folder"),
        (
            COUNTED,
            "model.smoothing",
            1e308,
            r"model\.smoothing: 1e\+308 should be less than or equal",
        ),
        (COUNTED, "model.smoothing", 5e-324, r"model\.smoothing: 5e-324 should be greater than or equal to"),
        (TRANSLATE, "train.batch_tokens", 0, r"train\.batch_tokens: 0 should be greater than or equal to 1"),
        (TRANSLATE, "train", 3, r"train: 3 should be a valid dictionary"),
        (TRANSLATE, "model", 3, r"model: 3 should be a valid dictionary"),
        (TRANSLATE, "model", [], r"model: \[\] should be a valid dictionary"),
        (TRANSLATE, "seed", "x" * 99, r"seed: 'x{58}… should be"),
        (TRANSLATE, "seed", "9" * 99, r"seed: 9{12}… is too large"),
        (TRANSLATE, "task.decode.must_not", [""], r"task\.decode\.must_not\.0: '' should have at least 1 ch"),
        (TRANSLATE, "task.decode.must_not", ["a"] * 101, r".*: \['a', .*… should have at most 100 items"),
        (TRANSLATE, "task.decode.must_not", "[a", r"task\.decode\.must_not: '\[a' is not a list in JSON"),
        (TRANSLATE, "data", "a.tsv", r"data: 'a\.tsv' should be a valid dictionary"),
        (TRANSLATE, "data.train", 3, r"data\.train: 3 should be a valid tuple"),
        (TRANSLATE, "data.columns.source", 2.5, r"data\.columns\.source: 2\.5 should be"),
        (TRANSLATE, "model.norm", "middle", r"model\.norm: 'middle' should be 'post' or 'pre'"),
        (TRANSLATE, "model.dropout", 1.0, r"model\.dropout: 1\.0 should be less than 1"),
        (
            TRANSLATE,
            "model.kind",
            "transfomer",
            r"model\.kind: unknown 'transfomer'; did you mean transformer\?",
        ),
        (TRANSLATE, "task.kind", "translat", r"task\.kind: unknown 'translat'; did you mean translate\?"),
        (TRANSLATE, "model", {}, r"model\.kind: missing"),
        (CLASSIFY, "model.encoder", {"cell": "gru"}, r"model\.encoder\.kind: missing"),
        (
            CLASSIFY,
            "model.encoder.kind",
            "lstm",
            r"model\.encoder\.kind: unknown 'lstm'; known: bert, ",
        ),
        (CLASSIFY, "model.encoder.d_hidden", 7, r"model\.encoder\.d_hidden: 7 should be a multiple of 2"),
        (
            CLASSIFY,
            "model.encoder.cell",
            "gur",
            r"model\.encoder\.cell: 'gur' should be 'rnn', 'lstm' or 'gru'",
        ),
        (CLASSIFY, "task.class_weights", "balancd", r"task\.class_weights: 'balancd' should be 'balanced'"),
        (CLASSIFY, "task.class_weights", {"a": -1}, r"task\.class_weights\.a: -1 should be greater than"),
        (CLASSIFY, "task.class_weights", {"a": 1e300}, r"task\.class_weights\.a: 1e\+300 should be less"),
        (CLASSIFY, "task.class_weights", {"a": "x"}, r"task\.class_weights\.a: 'x' should be a valid number"),
        (TRANSLATE, "model.n_heads", 3, r"model: n_heads \(3\) must divide d_model \(256\)"),
        (TRANSLATE, "model.n_kv_heads", 3, r"model: n_kv_heads \(3\) must divide n_heads \(4\)"),
        (
            TRANSLATE,
            "task.tokenizer.vocab_size",
            100,
            r"task\.tokenizer: vocab_size \(100\) must be at least",
        ),
        (TRANSLATE, "task.decode.n_best", 9, r"task\.decode: n_best \(9\) cannot exceed beam \(4\)"),
        (TRANSLATE, "train.max_epochs", None, r"train: training would never end; give max_epochs"),
        (TRANSLATE, "format_version", 2, r"format_version: 2 should be 1"),
        (
            TRANSLATE,
            "model.kind",
            "classifier",
            r"task 'translate' cannot use model 'classifier'; use transformer or rnn",
        ),
        (
            CLASSIFY,
            "model",
            {"kind": "transformer"},
            r"task 'classify' cannot use model 'transformer'; use classifier",
        ),
        (
            TRANSLATE,
            "model.n_encoder_layers",
            10**9,
            r"model\.n_encoder_layers: 1000000000 should be less than or equal",
        ),
        (
            CLASSIFY,
            "model.encoder.n_layers",
            10**9,
            r"model\.encoder\.n_layers: 1000000000 should be less than",
        ),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(
    recipe: dict[str, Any], path: str, value: Any, sentence: str
) -> None:
    with pytest.raises(RecipeError, match=f"^recipe: {sentence}") as raised:
        Recipe.parse(changed(recipe, path, value))
    assert "\n" not in str(raised.value)


def test_rotary_positions_need_pairs() -> None:
    given = changed(changed(TRANSLATE, "model.position", "rotary"), "model.d_model", 12)
    with pytest.raises(RecipeError, match=r"even head width, not d_model / n_heads = 3"):
        Recipe.parse(given)
    with pytest.raises(RecipeError, match=r"d_hidden \(7\) must be even"):
        Recipe.parse(changed(TRANSLATE, "model", {"kind": "rnn_seq2seq", "d_hidden": 7}))


@pytest.mark.parametrize("kind", ["transformer", "rnn_seq2seq"])
def test_only_one_vocabulary_can_be_copied_from(kind: str) -> None:
    copying = changed(changed(TRANSLATE, "model.kind", kind), "model.copies", True)
    with pytest.raises(RecipeError, match=r"model\.copies: .* set task\.joint = true"):
        Recipe.parse(copying)
    Recipe.parse(changed(copying, "task.joint", True))


@pytest.mark.parametrize(("recipe", "place"), [(TRANSLATE, "model"), (CLASSIFY, "model.encoder")])
def test_learned_positions_must_reach_as_far_as_the_texts(recipe: dict[str, Any], place: str) -> None:
    """A text of max_length pieces has an end, too."""
    given = changed(recipe, "task.max_length", 50)
    if recipe is CLASSIFY:
        given = changed(given, "model.encoder.kind", "transformer")
    for position, limit, fits in (("learned", 50, False), ("learned", 51, True), ("rotary", 50, True)):
        asked = changed(changed(given, f"{place}.position", position), f"{place}.max_positions", limit)
        if fits:
            Recipe.parse(asked)
        else:
            with pytest.raises(RecipeError, match=r"room for 49 tokens, but task.max_length is 50"):
                Recipe.parse(asked)


def test_missing_parts_are_said() -> None:
    for part in TRANSLATE:
        with pytest.raises(RecipeError, match=f"recipe: {part}: missing"):
            Recipe.parse({name: value for name, value in TRANSLATE.items() if name != part})
    with pytest.raises(RecipeError, match=r"data\.train: missing"):
        Recipe.parse(changed(TRANSLATE, "data", {}))


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.toml", b"seed = = 3", r"a\.toml: not a valid toml file"),
        ("a.toml", b"seed = '\xff'", r"a\.toml: not a valid toml file"),
        ("a.json", b"{", r"a\.json: not a valid json file"),
        ("a.json", b"[1, 2]", r"a\.json: not a table of settings"),
        ("a.json", b"[" * 100_000, r"a\.json: not a valid json file"),
        ("a.toml", b"#" * (MAX_BYTES + 1), rf"is larger than {MAX_BYTES:,} bytes"),
    ],
)
def test_files_that_are_no_recipes(tmp_path: Path, name: str, content: bytes, sentence: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(RecipeError, match=sentence):
        Recipe.read(tmp_path / name)


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"none\.toml: no such recipe; make one with: regard init"):
        Recipe.read(tmp_path / "none.toml")
    for odd in (tmp_path, Path("/dev/zero")):
        with pytest.raises(RecipeError, match="not a file"):
            Recipe.read(odd)


def test_a_mark_of_byte_order_is_no_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "marked.toml").write_text('\ufeffseed = "x"', "utf-8")
    with pytest.raises(RecipeError, match="seed"):
        Recipe.read(tmp_path / "marked.toml")


def test_is_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Recipe.parse(TRANSLATE).seed = 3  # type: ignore[misc]


def test_the_shipped_recipes_are_understood() -> None:
    recipes = sorted((Path(__file__).parents[1] / "recipes").glob("*.toml"))
    assert recipes
    for path in recipes:
        Recipe.read(path)


@pytest.mark.parametrize("kind", ["transformer", "gpt"])
def test_a_preset_that_is_no_name_is_refused(kind: str) -> None:
    given = {"task": {"kind": "translate"}, "data": {"train": ["a", "b"]}}
    with pytest.raises(RecipeError, match=r"model\.preset: \['tiny'\] should be 'tiny'"):
        Recipe.parse(given | {"model": {"kind": kind, "preset": ["tiny"]}})


LANGUAGE: dict[str, Any] = {
    "task": {"kind": "language_model", "max_length": 100},
    "data": {"train": ["a.txt"]},
    "model": {"kind": "gpt", "position": "rotary"},
}


@pytest.mark.parametrize(
    ("recipe", "changes", "sentence"),
    [
        (LANGUAGE, {"kind": "window", "left": 101}, r"model\.reach: windows of 101 reach 101 positions back"),
        (LANGUAGE, {"kind": "window", "left": 40, "dilation": 3}, "no text is longer than 100"),
        (LANGUAGE, {"kind": "chunks", "size": 64}, "chunks of 64 reach 127 positions back"),
        (
            LANGUAGE,
            {"kind": "window", "left": 9, "n_global": 101},
            r"n_global \(101\): no text",
        ),
        (LANGUAGE, {"kind": "window", "left": 9, "n_global": -1}, r"model\.reach\.n_global: -1 should be"),
        (LANGUAGE, {"kind": "chunks", "size": 0}, r"model\.reach\.size: 0 should be greater than"),
        (LANGUAGE, {"kind": "chunks", "size": 2.5}, r"model\.reach\.size: 2\.5 should be a valid integer"),
        (LANGUAGE, {"kind": "window", "dilation": 0}, r"model\.reach\.dilation: 0 should be greater than"),
        (
            LANGUAGE,
            {"kind": "linear", "feature": "relu"},
            r"reach\.feature: 'relu' should be 'elu' or",
        ),
        (LANGUAGE, {"kind": "windows"}, r"model\.reach\.kind: unknown 'windows'; did you mean window\?"),
        (LANGUAGE, {"left": 3}, r"model\.reach\.kind: missing"),
        (CLASSIFY, {"kind": "window"}, r"model\.encoder\.reach: unknown"),
    ],
)
def test_a_reach_that_cannot_be_is_one_sentence(
    recipe: dict[str, Any], changes: dict[str, Any], sentence: str
) -> None:
    where = "model.encoder.reach" if recipe is CLASSIFY else "model.reach"
    with pytest.raises(RecipeError, match=sentence):
        Recipe.parse(changed(recipe, where, changes))


@pytest.mark.parametrize(
    ("position", "kind", "sentence"),
    [
        (
            "alibi",
            "linear",
            "position = 'alibi' does not go with linear attention: .* has no score",
        ),
        (
            "relative",
            "landmarks",
            "position = 'relative' does not go with landmarks of 64: .* no",
        ),
        (
            "learned",
            "segments",
            "position = 'learned' does not go with segments of 128: a memory of",
        ),
        ("sinusoidal", "segments", "needs positions that know distances: rotary, relative, alibi or none"),
    ],
)
def test_positions_that_a_reach_cannot_have_are_said(position: str, kind: str, sentence: str) -> None:
    recipe = changed(changed(LANGUAGE, "model.reach.kind", kind), "model.position", position)
    with pytest.raises(RecipeError, match=sentence):
        Recipe.parse(recipe)


def test_linear_attention_drops_no_weights() -> None:
    recipe = changed(changed(LANGUAGE, "model.reach.kind", "linear"), "model.attention_dropout", 0.1)
    with pytest.raises(RecipeError, match=r"no weights to drop; set attention_dropout \(0\.1\) to 0"):
        Recipe.parse(recipe)

"""The recipe: one strict, typed description of a run, read from TOML and from `key=value` overrides."""

import json
import re
import tomllib
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, ValidationError, model_validator
from pydantic.fields import FieldInfo

from regard.config import Choice, Config, Fault, without_prefix
from regard.data.splits import Borders, Every, Fold, HoldOut
from regard.errors import DataError, RecipeError, did_you_mean, shown
from regard.files.catalogue import DESCRIBED
from regard.files.columns import Column, named_like
from regard.files.formats import file_format
from regard.files.lines import SHIPPED, expand
from regard.files.read import first_cells
from regard.models import (
    BERT4RecConfig,
    EncodingConfig,
    GPTConfig,
    HMMConfig,
    ModelConfig,
    RNNConfig,
    TransformerConfig,
)
from regard.models.encoders import ENCODERS
from regard.models.meta import max_tokens
from regard.tasks import TASKS, RecommendConfig, TaskConfig
from regard.training.config import TrainConfig

MAX_BYTES = 1_000_000
OBJECTIVES = {"next": "what comes next", "masked": "to fill in hidden items"}
MEMBER = re.compile(r"(constrained-)?(str|int)|literal\[.*\]|dict\[.*\]")
"""Pydantic's names for members of unions like `str | int`, in the place of an error."""


class DataConfig(Config):
    """Files of each split: aligned text files (one per role) or files of records, plain or .gz."""

    train: tuple[str, ...]
    valid: tuple[str, ...] | None = Field(
        None,
        description="without it, every 20th training row is held out, or the end of a plain text",
    )
    test: tuple[str, ...] | None = None
    columns: dict[str, Column] = Field({}, description="role → column name, or number counted from 1")
    fold: str | None = Field(
        None,
        pattern=r"^[1-9]\d{0,2}/[1-9]\d{0,2}$",
        description='such as "2/5": the second of five parts of the training rows is the test (`regard cv`)',
    )
    titles: str | None = Field(None, description="titles of items: a file of item, title and category")
    title_columns: dict[str, Column] = Field(
        {}, description="columns of that file: item, title, category → name or number"
    )
    encoding: str = "utf-8"

    @model_validator(mode="before")
    @classmethod
    def _one_file_is_a_list(cls, value: Any) -> Any:
        if isinstance(value, dict):
            splits = {
                key: value[key] for key in ("train", "valid", "test") if isinstance(value.get(key), str)
            }
            return value | {key: [path] for key, path in splits.items()}
        return value

    @model_validator(mode="after")
    def _fold_is_all(self) -> Self:
        if self.fold is None:
            return self
        place, of = map(int, self.fold.split("/"))
        if not place <= of or of < 2:
            raise ValueError(f"fold: {self.fold} is no part of several; write 1/5 to 5/5")
        if self.valid or self.test:
            raise ValueError("fold: is taken from the training data; leave out valid and test")
        return self

    def beside(self, folder: Path) -> Self:
        """The same data; files that are not in the current folder, but in this one, are read there."""
        files = {
            split: tuple(_beside(folder, file) for file in named)
            for split in ("train", "valid", "test")
            if (named := getattr(self, split)) is not None
        }
        titles = {} if self.titles is None else {"titles": _beside(folder, self.titles)}
        return self.model_copy(update={**files, **titles})

    def columns_in(self, file: str) -> dict[str, Column]:
        """The part of `columns` that applies to another file, which may have a header of its own."""
        trained, format_ = file_format(self.train[0]), file_format(file)
        if trained == format_:
            return self.columns
        if not {trained, format_} <= {"tsv", "csv", "jsonl", "parquet"}:
            return {}
        header = first_cells(file, self.encoding) if format_ in ("tsv", "csv") else None
        return {
            role: column
            for role, column in self.columns.items()
            if isinstance(column, str) or (header is not None and not named_like(role, header))
        }


def _beside(folder: Path, file: str) -> str:
    there = f"{folder}/{file}"
    if file.startswith(SHIPPED) or Path(file).is_absolute() or _is_there(file) or not _is_there(there):
        return file
    return there


def _is_there(file: str) -> bool:
    try:
        return any(Path(one).exists() for one in expand(file))
    except (DataError, OSError, ValueError):  # a pattern without files, a name that no file can have
        return False


def laid_out(
    data: DataConfig | None,
    file: str,
    roles: Sequence[str],
    columns: Mapping[str, Column] | None = None,
    encoding: str | None = None,
) -> tuple[dict[str, Column | None], str]:
    """The column of each role in a file, and its encoding: as given, else as in the data of a recipe."""
    for role in columns or {}:
        if role not in roles:
            raise RecipeError(f"columns.{role}: unknown{did_you_mean(role, roles)}")
    if data is not None:
        columns, encoding = columns or data.columns_in(file), encoding or data.encoding
    return {role: (columns or {}).get(role) for role in roles}, encoding or "utf-8"


def _folder(value: Any) -> Any:
    """Validate the name of a folder; a number like 2026 is one too."""
    name = str(value) if type(value) in (str, int) else ""
    if not name.isprintable() or not name:
        in_quotes = "" if isinstance(value, str) else "; write it in quotes"
        raise ValueError(f"{value!r} is not the name of a folder{in_quotes}")
    return name


class Recipe(Config):
    format_version: Literal[1] = 1
    run: Annotated[str, BeforeValidator(_folder)] = Field(
        "runs/run", description="folder for everything about this run"
    )
    seed: int = Field(1, ge=0)
    task: TaskConfig
    data: DataConfig
    model: ModelConfig
    train: TrainConfig = TrainConfig()

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        fitting = TASKS[self.task.kind].models
        if self.model.kind not in fitting:
            raise ValueError(
                f"task {self.task.kind!r} cannot use model {self.model.kind!r}; use {' or '.join(fitting)}"
            )
        most, needed = max_tokens(self.model), self.task.longest(self.model)
        if self._is_from_folder("max_positions"):
            most = None
        if most is not None and most <= needed:
            needs = "is" if needed == self.task.max_length else "needs, for context and reply together,"
            raise ValueError(
                f"max_positions leaves room for {most - 1} tokens, but task.max_length {needs} {needed}; "
                "raise max_positions or lower task.max_length"
            )
        self._encoder_fits()
        self._reach_fits(needed)
        self._layers_fit()
        self._can_copy()
        self._objective_fits()
        if self.data.fold is not None and not isinstance(self.task.hold_out, Every):
            raise ValueError(
                f"data.fold: rows of the task {self.task.kind!r} are parts of something longer and are not "
                "dealt out in folds; leave it out"
            )
        for name, columns, roles in (
            ("columns", self.data.columns, self.task.roles),
            ("title_columns", self.data.title_columns, DESCRIBED),
        ):
            for role in columns:
                if role not in roles:
                    raise ValueError(f"data.{name}.{role}: unknown{did_you_mean(role, roles)}")
        return self

    def _encoder_fits(self) -> None:
        """Refuse an encoder that does not read the task's kind of input."""
        if not isinstance(self.model, EncodingConfig):
            return
        needs = {field.reads for field in self.task.asked.values()} - {""} or {"tokens"}
        reads = self.model.encoder.reads
        for needed in needs - {reads}:
            fitting = [kind for kind, encoder in ENCODERS.items() if encoder.reads == needed]
            raise ValueError(
                f"model.encoder: {self.model.encoder.kind} reads {reads}, but the "
                f"task's input is {needed}; use {' or '.join(fitting) or 'another task'}"
            )
        if needs != {"tokens"} and getattr(self.model, "ngrams", None) is not None:
            raise ValueError("model.ngrams: only a text has n-grams; leave the table out")

    def _reach_fits(self, longest: int) -> None:
        """Refuse a reach that no text is longer than."""
        model = self.model
        name, stack = (
            ("model.encoder", model.encoder) if isinstance(model, EncodingConfig) else ("model", model)
        )
        reach = getattr(stack, "reach", None)
        if reach is None or getattr(stack, "reads", "tokens") != "tokens":
            return
        if reach.width is not None and reach.width > longest:
            raise ValueError(
                f"{name}.reach: {reach} reach {reach.width:,} positions back, but no text is longer than "
                f"{longest:,} (task.max_length); make it smaller, raise that, or leave reach out"
            )
        if getattr(reach, "n_global", 0) > longest:
            raise ValueError(
                f"{name}.reach.n_global ({reach.n_global:,}): no text is longer than {longest:,} tokens "
                "(task.max_length); make it smaller"
            )

    def _layers_fit(self) -> None:
        """Refuse settings of layers that the model does not have."""
        if self._is_from_folder("n_layers"):
            return
        model, train = self.model, self.train
        n_layers = model.n_layers if isinstance(model, EncodingConfig) else None
        if train.layer_decay < 1 and n_layers is None:
            raise ValueError(
                "train.layer_decay: works with an encoder of layers (transformer, bert) only; set it to 1"
            )
        if isinstance(model, HMMConfig) and train.shard:
            raise ValueError(
                "train.shard: an HMM is learnt by counting and cannot be sharded; set it to false"
            )
        if not isinstance(model, EncodingConfig):
            return
        if model.freeze is not None and model.freeze > (n_layers or 0):
            raise ValueError(
                f"model.freeze ({model.freeze}) is more than the {n_layers or 0} layers of the encoder"
            )
        if model.lora is not None and (n_layers is None or model.init_from is None):
            raise ValueError("model.lora: adapts the layers of a trained encoder; set model.init_from too")
        if model.lora is not None and train.shard:
            raise ValueError("model.lora: its few weights are not sharded; set train.shard = false")

    def _can_copy(self) -> None:
        if not isinstance(self.model, TransformerConfig | RNNConfig) or not self.model.copies:
            return
        if not getattr(self.task, "joint", False):
            raise ValueError(
                "model.copies: copying needs one vocabulary for both sides; set task.joint = true"
            )

    def _objective_fits(self) -> None:
        """Refuse an objective that the recommender does not learn."""
        if not isinstance(self.task, RecommendConfig):
            if self.data.titles is not None:
                raise ValueError(
                    f"data.titles: is for items, which the task {self.task.kind!r} does not have; remove it"
                )
            return
        objective = "masked" if isinstance(self.model, BERT4RecConfig) else "next"
        if self.task.objective != objective:
            raise ValueError(
                f"task.objective: {self.model.kind} learns {OBJECTIVES[objective]}; set it to {objective!r}"
            )

    def _is_from_folder(self, setting: str) -> bool:
        """True if a setting of the layers will be read from the folder in `init_from`."""
        model = self.model
        if not isinstance(model, EncodingConfig | GPTConfig) or model.init_from is None:
            return False
        layers = model if isinstance(model, GPTConfig) else model.encoder
        return setting not in layers.model_fields_set

    @classmethod
    def read(cls, path: Path | str, overrides: Sequence[str] = ()) -> Self:
        """A recipe file (.toml, or the .json a run folder holds), with overrides like `model.n_heads=8`."""
        path = Path(path)
        try:
            if path.exists() and not path.is_file():
                raise RecipeError(f"{path}: not a file; give a recipe, which is a .toml file")
            with path.open("rb") as file:
                text = file.read(MAX_BYTES + 1)
            if len(text) > MAX_BYTES:
                raise RecipeError(f"{path}: is larger than {MAX_BYTES:,} bytes; is it a recipe?")
            table = json.loads(text) if path.suffix == ".json" else tomllib.loads(text.decode("utf-8-sig"))
        except FileNotFoundError:
            raise RecipeError(f"{path}: no such recipe; make one with: regard init YOUR_FILES") from None
        except OSError as error:
            raise RecipeError(f"{path}: cannot be read ({error.strerror})") from error
        except (UnicodeDecodeError, ValueError, RecursionError) as error:
            raise RecipeError(
                f"{path}: not a valid {path.suffix.strip('.') or 'TOML'} file: {error}"
            ) from error
        if not isinstance(table, dict):
            raise RecipeError(f"{path}: not a table of settings; make a recipe with: regard init YOUR_FILES")
        for override in overrides:
            _override(table, override)
        recipe = cls.parse(table, str(path))
        if path.parent == Path() or path.suffix == ".json":
            return recipe
        return recipe.model_copy(update={"data": recipe.data.beside(path.parent)})

    @classmethod
    def parse(cls, settings: dict[str, Any], where: str = "recipe") -> Self:
        if isinstance(settings.get("task"), dict) and "fields" in settings:
            task = settings["task"] | {"fields": settings["fields"]}
            settings = {name: table for name, table in settings.items() if name != "fields"} | {"task": task}
        try:
            return cls.model_validate(settings)
        except ValidationError as error:
            raise RecipeError(f"{where}: {_first_fault(cls, error)}") from None

    @property
    def hold_out(self) -> HoldOut:
        """The hold-out that is used if no validation data are given."""
        held_out = self.task.hold_out
        if self.data.fold is not None and isinstance(held_out, Every):
            place, of = map(int, self.data.fold.split("/"))
            return Fold(held_out, place, of)
        return held_out.without_test if isinstance(held_out, Borders) and self.data.test else held_out

    def columns(self) -> dict[str, Column | None]:
        """The roles of the task, each with its column if one is given."""
        return {role: self.data.columns.get(role) for role in self.task.roles}


def _override(table: dict[str, Any], override: str) -> None:
    key, equals, value = override.partition("=")
    path = key.strip().split(".")
    if not equals or not all(path):
        raise RecipeError(f"{override!r}: write an override as key=value, for example model.n_heads=8")
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError):
        parsed = value  # plain text needs no quotes on a command line
    if path == ["run"] and not isinstance(parsed, str | list | dict):
        parsed = value  # 1.10 is a name other than 1.1
    for step, name in enumerate(path[:-1]):
        table = table.setdefault(name, {})
        if not isinstance(table, dict):
            raise RecipeError(f"{override!r}: {'.'.join(path[: step + 1])} is a value, not a table")
    table[path[-1]] = parsed


def _first_fault(root: type[BaseModel], error: ValidationError) -> str:
    """The first error of pydantic as one sentence, with the path as it is in the file."""
    faults = error.errors(include_url=False)
    unknown = [fault for fault in faults if fault["type"] == "extra_forbidden"]
    fault = _furthest(unknown or faults)
    path, owner = _path(root, fault["loc"])
    name = ".".join(path) or "the recipe"
    if fault["type"] == "extra_forbidden":
        names = list(owner.model_fields) if owner is not None else []
        return f"{name}: unknown{did_you_mean(path[-1], names)}"
    if fault["type"] == "missing":
        return f"{name}: missing"
    message = without_prefix(fault["msg"])
    if fault["type"] == "value_error":
        return f"{name}: {message}" if path else message
    if fault["type"] == "union_tag_invalid":
        tag, tags = str(fault["ctx"]["tag"]), fault["ctx"]["expected_tags"].replace("'", "")
        return f"{name}.kind: unknown {tag!r}{did_you_mean(tag, tags.split(', '))}"
    if fault["type"] == "union_tag_not_found":
        return f"{name}.kind: missing"
    return f"{name}: {shown(fault['input'])} {message}"


def _furthest(faults: list[Fault]) -> Fault:
    """The first error; of a union's errors, the one of the member that fits furthest."""
    *before, last = faults[0]["loc"] or ("",)
    if not MEMBER.fullmatch(str(last)):
        return faults[0]
    members = [fault for fault in faults if [*fault["loc"][: len(before)]] == before]
    return max(members, key=lambda fault: len(fault["loc"]))


def _path(root: type[BaseModel], location: tuple[int | str, ...]) -> tuple[list[str], type[BaseModel] | None]:
    """The visible path (without pydantic's union tags) and the class that owns its last name."""
    path: list[str] = []
    owner: type[BaseModel] | None = root
    branches: list[type[BaseModel]] = [root]
    for part in location:
        tagged = [branch for branch in branches if _kind(branch) == part]
        if len(branches) > 1 and tagged:
            branches = tagged
            continue
        if not branches and path and MEMBER.fullmatch(str(part)):
            continue
        owner = branches[0] if branches else None
        path.append(str(part))
        field = owner.model_fields.get(str(part)) if owner is not None else None
        branches = _branches(field) if field is not None else []
    return path, owner


def _branches(field: FieldInfo) -> list[type[BaseModel]]:
    """The classes that a setting may have."""
    choices = [part for part in field.metadata if isinstance(part, Choice)]
    return [*choices[0].table.values()] if choices else _models_in(field.annotation)


def _kind(model: type[BaseModel]) -> object:
    field = model.model_fields.get("kind")
    return None if field is None else field.default


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type):
        return [annotation] if issubclass(annotation, BaseModel) else []
    return [model for part in typing.get_args(annotation) for model in _models_in(part)]

"""Writes the tables of docs/recipe.md from the configuration classes: python docs/make_reference.py

A setting's meaning is the `description` of its field. Those whose name nearly says it have none in the code;
MEANINGS gives them their sentence, and has no entry for a field that describes itself.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel

from regard.decode import DecodeConfig
from regard.fields import FIELDS
from regard.fields.field import Field
from regard.fields.items import ItemsSettings
from regard.layers.block import BlockConfig
from regard.layers.ngrams import NgramsConfig
from regard.layers.reach import REACHES
from regard.layers.sampled import GBCEConfig, SampledSoftmaxConfig, SoftmaxConfig
from regard.models import (
    AnswererConfig,
    BERT4RecConfig,
    BertConfig,
    BertPretrainingConfig,
    CaptionerConfig,
    ClassifierConfig,
    CTCConfig,
    GPTConfig,
    GRU4RecConfig,
    HMMConfig,
    RelaterConfig,
    RNNConfig,
    SASRecConfig,
    TaggerConfig,
    TransducerConfig,
    TransformerConfig,
)
from regard.models.captioner import RNNDecoderConfig, TransformerDecoderConfig
from regard.models.encoders import RNNEncoderConfig, TransformerEncoderConfig, WordsEncoderConfig
from regard.models.encoders.bert import PRESETS as BERT_PRESETS
from regard.models.encoders.speech import SpeechConfig
from regard.models.encoders.video import VideoConfig
from regard.models.gpt import PRESETS as GPT_PRESETS
from regard.models.transformer import PRESETS
from regard.recipe import DataConfig, Recipe
from regard.tasks import TASKS, RecommendConfig, TagConfig, Task, TranscribeConfig
from regard.tasks.caption import CaptionSearch
from regard.tasks.dialogue import ReplyConfig
from regard.tasks.language_model import ContinueConfig
from regard.tasks.pretrain import PretrainTokenizer
from regard.tasks.transcribe import HearConfig
from regard.text.vocabulary import TokenizerConfig
from regard.training.config import TrainConfig

PAGE = Path(__file__).with_name("recipe.md")
BEGIN, END = "<!-- made by make_reference.py: begin -->\n", "<!-- made by make_reference.py: end -->\n"

Schema = dict[str, Any]


class Section(NamedTuple):
    """One table: where it stands in a recipe, the class behind it, a sentence before it."""

    title: str
    config: type[BaseModel]
    about: str
    only: tuple[str, ...] = ()
    """The settings shown; all of them when empty."""


RECOMMENDER_SETTINGS = (
    *("d_model", "n_heads", "d_ff", "n_layers", "activation", "norm", "position", "max_positions", "dropout"),
    *("time_gaps", "tie_embeddings"),
)


def _task_section(task: type[Task]) -> Section:
    """The table of a task, with what its settings say of themselves and its page if it has one."""
    page = PAGE.with_name(f"{task.kind}.md")
    about = task.settings.__doc__ + (f" More in [{page.name}]({page.name})." if page.exists() else "")
    return Section(f'`[task]` with `kind = "{task.kind}"`', task.settings, about)


TASK_SECTIONS = tuple(map(_task_section, TASKS.values()))


def _field_section(kind: str, field: type[Field]) -> Section:
    """The table of a kind of data, with what its settings say of themselves."""
    return Section(f"`[fields.{kind}]`", field.settings, str(field.settings.__doc__))


FIELD_SECTIONS = tuple(
    _field_section(kind, field) for kind, field in FIELDS.items() if field.settings.__doc__
)
"""Text and labels have no table: what is decided about text is decided by the task."""
REACH_SECTIONS = tuple(
    Section(f'`[model.reach]` with `kind = "{kind}"`', reach, str(reach.__doc__))
    for kind, reach in REACHES.items()
)
SECTIONS = (
    Section("The top of the file", Recipe, "These stand before the first `[table]`."),
    Section("`[data]`", DataConfig, "Formats and columns are explained in [data.md](data.md)."),
    *TASK_SECTIONS,
    *FIELD_SECTIONS,
    Section("`[task.decode]` of `transcribe`", HearConfig, "How a transcript is searched for."),
    Section(
        "`[task.decode]` of `caption`",
        CaptionSearch,
        "As for `translate`; only these differ.",
        ("min_length", "max_length"),
    ),
    Section("`[fields.items]`", ItemsSettings, "How interactions become histories, for `recommend`."),
    Section(
        '`[task.loss]` with `kind = "softmax"`', SoftmaxConfig, "Cross-entropy over the whole catalogue."
    ),
    Section(
        '`[task.loss]` with `kind = "sampled_softmax"`',
        SampledSoftmaxConfig,
        "Cross-entropy over the target and drawn negatives, corrected for how often each is drawn.",
    ),
    Section(
        '`[task.loss]` with `kind = "gbce"`',
        GBCEConfig,
        "Generalised binary cross-entropy with few negatives (Petrov & Macdonald 2023).",
    ),
    Section(
        "`[task.tokenizer]`",
        TokenizerConfig,
        'Learnt from the training data, where a task reads text. Of a language model `space` is `"kept"`.',
    ),
    Section(
        "`[task.tokenizer]` of `pretrain`",
        PretrainTokenizer,
        "It has all of the above but other kinds; this begins otherwise.",
        ("lowercase",),
    ),
    Section("`[task.decode]`", DecodeConfig, "How a model that writes searches."),
    Section(
        "`[task.decode]` of a dialogue",
        ReplyConfig,
        "It has all of the above; these differ.",
        ("min_length", "max_length"),
    ),
    Section(
        "`[task.decode]` of a language model",
        ContinueConfig,
        "It has all of `[task.decode]`; these begin otherwise.",
        ("sample", "top_p", "max_length"),
    ),
    Section(
        '`[model]` with `kind = "transformer"`',
        TransformerConfig,
        "For `translate`, `summarize` and `dialogue`. "
        "It also has every setting of a layer, in the next table.",
        ("preset", "n_encoder_layers", "n_decoder_layers", "tie_embeddings", "copies"),
    ),
    Section(
        "A Transformer layer",
        BlockConfig,
        "These stand in `[model]` of a `transformer` or a `gpt`, and in `[model.encoder]` where that is one.",
    ),
    *REACH_SECTIONS,
    Section(
        '`[model]` with `kind = "gpt"`',
        GPTConfig,
        "For `language_model` and `dialogue`. It also has every setting of a Transformer layer; "
        "these differ or are new.",
        (
            *("init_from", "preset", "d_model", "d_ff", "n_layers"),
            *("activation", "norm", "position", "tie_embeddings"),
        ),
    ),
    Section(
        '`[model]` with `kind = "rnn_seq2seq"`', RNNConfig, "For `translate`, `summarize` and `dialogue`."
    ),
    Section(
        '`[model]` with `kind = "classifier"`',
        ClassifierConfig,
        "For `classify`, `classify_pair` and `multilabel`.",
    ),
    Section("`[model.ngrams]`", NgramsConfig, "What n-grams of tokens add to a classifier's scores."),
    Section('`[model]` with `kind = "tagger"`', TaggerConfig, "For `tag`; its encoders are a classifier's."),
    Section(
        '`[model]` with `kind = "hmm"`',
        HMMConfig,
        "For `tag`; it counts, and needs nothing of `[train]`.",
    ),
    Section(
        '`[model]` with `kind = "relater"`', RelaterConfig, "For `relation`; its encoders are a classifier's."
    ),
    Section(
        '`[model]` with `kind = "answerer"`', AnswererConfig, "For `answer`; its encoders are a classifier's."
    ),
    Section(
        '`[model]` with `kind = "bert_pretraining"`',
        BertPretrainingConfig,
        "For `pretrain`; its encoder is a `bert`.",
    ),
    Section(
        '`[model]` with `kind = "sasrec"`',
        SASRecConfig,
        "For `recommend`. It also has every setting of a Transformer layer; these differ or are new.",
        RECOMMENDER_SETTINGS,
    ),
    Section(
        '`[model]` with `kind = "bert4rec"`',
        BERT4RecConfig,
        'For `recommend` with `objective = "masked"`. It also has every setting of a Transformer layer; '
        "these differ or are new.",
        tuple(name for name in RECOMMENDER_SETTINGS if name != "tie_embeddings"),
    ),
    Section('`[model]` with `kind = "gru4rec"`', GRU4RecConfig, "For `recommend`: a recurrent network."),
    Section(
        '`[model]` with `kind = "transducer"`',
        TransducerConfig,
        "For `transcribe`; its encoder is a `speech`.",
        ("init_from", "freeze", "prediction", "context", "d_joint", "ctc", "fast_emit", "dropout"),
    ),
    Section(
        '`[model]` with `kind = "ctc"`',
        CTCConfig,
        "For `transcribe`; its encoder is a `speech`.",
        ("init_from", "freeze", "dropout"),
    ),
    Section(
        '`[model]` with `kind = "captioner"`',
        CaptionerConfig,
        "For `caption`; its encoder is a `cnn` or a `vit`.",
        ("init_from", "freeze", "encoder", "decoder", "dropout"),
    ),
    Section('`[model.decoder]` with `kind = "rnn"`', RNNDecoderConfig, "The default decoder of a captioner."),
    Section(
        '`[model.decoder]` with `kind = "transformer"`',
        TransformerDecoderConfig,
        "It also has every setting of a Transformer layer; these differ or are new.",
        ("n_layers", "norm", "tie_embeddings"),
    ),
    Section(
        '`[model.encoder]` with `kind = "rnn"`',
        RNNEncoderConfig,
        "The default encoder; a tagger's and a relater's have `d_hidden` 256 and `dropout` 0.5 unless told.",
    ),
    Section(
        '`[model.encoder]` with `kind = "transformer"`',
        TransformerEncoderConfig,
        "It also has every setting of a Transformer layer; these differ or are new.",
        ("d_model", "d_ff", "n_layers"),
    ),
    Section(
        '`[model.encoder]` with `kind = "bert"`',
        BertConfig,
        "With `init_from` all of it comes from the folder. It also has the dropouts of a Transformer layer "
        "and its `activation`, which is `gelu` here; norms stand after the layers, positions are learned.",
        ("preset", "d_model", "n_heads", "d_ff", "n_layers", "n_segments", "max_positions", "norm_eps"),
    ),
    Section(
        '`[model.encoder]` with `kind = "words"`', WordsEncoderConfig, "None: pooling looks at the words."
    ),
    Section(
        '`[model.encoder]` with `kind = "video"`',
        VideoConfig,
        "Reads clips. It also has every setting of a Transformer layer; these differ or are new.",
        ("space_time", "tube", "patch", "d_model", "n_heads", "d_ff", "n_layers", "dropout"),
    ),
    Section(
        '`[model.encoder]` with `kind = "speech"`',
        SpeechConfig,
        "For recordings. It also has every setting of a Transformer layer; these differ or are new.",
        (
            *("block", "kernel", "d_stem", "chunk", "left_chunks", "look_ahead", "mixed"),
            *("d_model", "n_heads", "d_ff", "n_layers", "position"),
        ),
    ),
    Section("`[train]`", TrainConfig, "What they do in a run is told in [train.md](train.md)."),
)

CELL = "plain, long short-term memory, gated recurrent unit"

RECOMMENDER = {
    "n_heads": "attention heads; must divide `d_model`",
    "n_layers": "Transformer layers",
    "activation": "as above",
    "norm": "as above",
    "position": "as above",
}

GENERAL = {
    "tokenizer": "how text becomes tokens",
    "label_smoothing": "share of the target probability spread evenly over all that could be answered",
    "decode": "how the answer is searched for",
}
"""What settings mean that tasks have alike."""

MEANINGS: dict[type[BaseModel], dict[str, str]] = {
    Recipe: {
        "format_version": "of recipes; there is only this one",
        "seed": "decides the first weights, the order of the data and what dropout drops",
        "task": "what is to be done",
        "data": "the files",
        "model": "what learns it",
        "train": "how long, how fast, how often; 20 epochs with patience 5 if no end is given",
    },
    DataConfig: {
        "train": "the files to learn from; one file may stand without brackets",
        "test": "scored once, at the end",
        "encoding": "of all the files, by its Python name, such as `gb18030`",
    },
    TagConfig: {
        "tokenizer": "how words become tokens",
    },
    TranscribeConfig: {
        "tokenizer": "the labels that are written: characters, tokens or words",
        "decode": "how the transcript is searched for",
    },
    VideoConfig: {
        "d_model": "width of the states",
        "n_heads": "attention heads; must divide `d_model`",
        "d_ff": "inner width of the feed-forward networks",
        "n_layers": "stacked",
    },
    SpeechConfig: {
        "d_model": "width of the states",
        "d_ff": "inner width of the feed-forward networks",
        "n_heads": "attention heads; must divide `d_model`",
        "n_layers": "stacked",
        "position": "as above",
    },
    CaptionerConfig: {"encoder": "what reads the picture", "decoder": "what writes and looks"},
    RNNDecoderConfig: {
        "cell": CELL,
        "d_embed": "width of an embedded token",
        "n_layers": "recurrent layers",
        "attention": "as for `rnn_seq2seq`",
        "order": "as for `rnn_seq2seq`",
        "input_feeding": "as for `rnn_seq2seq`",
        "combine": "as for `rnn_seq2seq`",
        "dropout": "on embeddings, regions and outputs",
    },
    TransformerDecoderConfig: {
        "n_layers": "Transformer layers",
        "norm": "where layers are normalised",
        "tie_embeddings": "the output matrix is the embedding's",
    },
    TokenizerConfig: {
        "kind": "byte-pair encoding, unigram, WordPiece, characters, or whole words",
        "vocab_size": "upper bound for all tokens, the 256 bytes of `bpe` and `unigram` included",
        "lowercase": "fold case before anything else",
        "min_frequency": "characters, tokens and words seen less often are not learnt",
    },
    GPTConfig: {
        "n_layers": "stacked",
        "activation": "as above",
        "norm": "as above",
        "position": "as above",
        "tie_embeddings": "the output matrix is the embedding's",
    },
    BlockConfig: {
        "n_heads": "attention heads; must divide `d_model`",
        "activation": "of the feed-forward network; `swiglu` is gated and has a third matrix",
        "norm": "`post`: LayerNorm(x + f(x)), the paper; `pre`: x + f(LayerNorm(x))",
        "norm_eps": "the ε of LayerNorm",
        "bias": "whether the dense maps have one",
        "position": "how order is told; see [attention.md](attention.md#13-positions)",
    },
    TransformerConfig: {
        "n_encoder_layers": "layers that read the source",
        "n_decoder_layers": "layers that write the target",
        "tie_embeddings": "the output matrix is the target embedding's; with `joint`, the source's too",
    },
    RNNConfig: {
        "cell": CELL,
        "d_embed": "width of an embedded token",
        "n_layers": "of the encoder and of the decoder",
        "bidirectional": "the encoder reads both ways",
        "attention": "`none` is the fixed context vector",
        "order": "`bahdanau`: look, then step; `luong`: step, then look",
        "input_feeding": "`luong` only: what enters the next step: g(h, c), the context c alone, or nothing",
        "combine": "g(h, c): tanh(W [h; c]), or h + c",
        "dropout": "on embeddings, between layers, on encoder states and before the output",
    },
    RecommendConfig: {
        "loss": "what is minimised; the tables below",
    },
    SoftmaxConfig: {"smoothing": "share of the target probability spread evenly over the catalogue"},
    SASRecConfig: RECOMMENDER,
    BERT4RecConfig: RECOMMENDER,
    GRU4RecConfig: {
        "cell": CELL,
        "n_layers": "recurrent layers",
    },
    ClassifierConfig: {
        "encoder": "what reads the text",
        "pooling": "many states to one: by additive attention, the first, the first through BERT's pooler, "
        "or the mean",
    },
    TaggerConfig: {"encoder": "what reads the text"},
    RelaterConfig: {"encoder": "what reads the text", "pooling": "as a classifier's"},
    AnswererConfig: {"encoder": "what reads question and context"},
    RNNEncoderConfig: {
        "cell": CELL,
        "d_embed": "width of an embedded token",
        "n_layers": "recurrent layers",
        "bidirectional": "read both ways",
        "dropout": "on embeddings and between layers",
    },
    TransformerEncoderConfig: {
        "d_model": "width of the residual stream",
        "d_ff": "inner width of the feed-forward network",
        "n_layers": "Transformer layers",
    },
    BertConfig: {
        "d_model": "width of the residual stream",
        "n_heads": "attention heads; must divide `d_model`",
        "d_ff": "inner width of the feed-forward network",
        "n_layers": "Transformer layers",
        "norm_eps": "the ε of LayerNorm; the paper's",
    },
    WordsEncoderConfig: {"d_embed": "width of an embedded token", "dropout": "on embeddings"},
    TrainConfig: {
        "max_epochs": "times through the training data",
        "max_steps": "updates of the weights",
        "betas": "Adam's two averages; the paper's",
        "eps": "Adam's ε; the paper's",
        "weight_decay": "pull of the weights towards zero",
        "schedule": "of the learning rate; formulas in [train.md](train.md#learning-rate)",
    },
}


def settings(section: Section) -> Iterator[tuple[str, Schema]]:
    """Names and JSON schemas; a `kind` that can be one thing only is the section's title."""
    fields = section.config.model_json_schema()["properties"]
    for name in section.only or fields:
        if not (name == "kind" and "const" in fields[name]):
            yield name, fields[name]


def meaning(config: type[BaseModel], name: str, schema: Schema) -> str:
    return schema.get("description") or MEANINGS.get(config, {}).get(name) or GENERAL[name]


def values(schema: Schema) -> str:
    """What may stand there, in words."""
    if schema.get("const") is True:
        return "true"
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(values(each) for each in schema["anyOf"] if each != {"type": "null"})
    if "prefixItems" in schema:
        return f"list of {len(schema['prefixItems'])} numbers"
    match schema.get("type"):
        case "boolean":
            return "true, false"
        case "string":
            return "text"
        case "array":
            return f"list of {'texts' if 'maxLength' in schema['items'] else 'files'}"
        case "integer" | "number" as kind:
            return f"{kind}{_bounds(schema)}"
        case _:
            return "table"


def _bounds(schema: Schema) -> str:
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    bounds = [f"{sign} {schema[key]:,}" for key, sign in signs.items() if key in schema]
    if "multipleOf" in schema:
        bounds.append(f"a multiple of {schema['multipleOf']}")
    return " " + ", ".join(bounds) if bounds else ""


def default(schema: Schema) -> str:
    if "default" not in schema:
        return "must be given"
    match schema["default"]:
        case None:
            return "not set"
        case bool(value):
            return f"`{str(value).lower()}`"
        case str(value):
            return f'`"{value}"`'
        case dict(value):
            return "see its table" if value else "none"
        case value:
            return f"`{value}`"


def reference() -> str:
    presets = [
        _presets("the Transformer", PRESETS),
        _presets("BERT", BERT_PRESETS),
        _presets("GPT", GPT_PRESETS),
    ]
    return "\n".join([*map(_table, SECTIONS), *presets])


def _table(section: Section) -> str:
    rows = [
        f"| `{name}` | {values(schema)} | {default(schema)} | {meaning(section.config, name, schema)} |\n"
        for name, schema in settings(section)
    ]
    head = "| setting | values | default | meaning |\n|---|---|---|---|\n"
    return f"### {section.title}\n\n{section.about}\n\n{head}{''.join(rows)}"


def _presets(model: str, presets: Mapping[str, Mapping[str, Any]]) -> str:
    names = list(presets["tiny"])
    rows = [[preset, *(sizes[name] for name in names)] for preset, sizes in presets.items()]
    table = [["preset", *(f"`{name}`" for name in names)], ["---"] * (len(names) + 1), *rows]
    lines = [f"| {' | '.join(map(str, row))} |\n" for row in table]
    return f"### Presets of {model}\n\nWhat is given beside a preset wins.\n\n{''.join(lines)}"


def updated(page: str) -> str:
    """The page with its tables as the classes are now."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n{reference()}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text("utf-8")), "utf-8")

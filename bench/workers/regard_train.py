"""regard's own training loop on the shared pieces; the clock stands in the caller's for-loop.

The pieces are read as whitespace-separated words through regard's tokeniser, so that its tokens are the other
tools' tokens. Its batches are its own: 4,096 tokens counting padding, bucketed by length.
"""

import tempfile
from pathlib import Path

import tokenizers as hf
import torch
from model import (
    ADAM_BETAS,
    BATCH_TOKENS,
    CLIP_NORM,
    D_DECODER,
    D_EMBED,
    D_ENCODER,
    D_FF,
    D_MODEL,
    DROPOUT,
    LABEL_SMOOTHING,
    N_HEADS,
    N_LAYERS,
    NOAM_WARMUP,
)
from stopwatch import Stopwatch, arguments

from regard.data.cache import Examples
from regard.files.read import read_rows
from regard.models import RNNConfig, TransformerConfig
from regard.tasks.translate import Translate, TranslateConfig
from regard.text.tokenizer import Tokenizer
from regard.text.vocabulary import SPECIALS
from regard.training.config import TrainConfig
from regard.training.events import Step
from regard.training.loop import Training, run
from regard.training.machine import keep_freed_memory

NEVER = 10**9
MODELS: dict[str, TransformerConfig | RNNConfig] = {
    "transformer": TransformerConfig(
        d_model=D_MODEL,
        d_ff=D_FF,
        n_heads=N_HEADS,
        n_encoder_layers=N_LAYERS,
        n_decoder_layers=N_LAYERS,
        activation="relu",
        norm="post",
        position="sinusoidal",
        dropout=DROPOUT,
        inner_dropout=0.0,
        attention_dropout=0.0,
    ),
    "rnn": RNNConfig(
        cell="gru",
        d_embed=D_EMBED,
        d_hidden=D_DECODER,
        n_layers=1,
        bidirectional=True,
        attention="additive",
        order="luong",
        input_feeding=True,
        combine="concat",
        dropout=DROPOUT,
    ),
}
assert D_DECODER == 2 * D_ENCODER, "regard splits d_hidden between the encoder's two directions"

PLAN = TrainConfig(
    max_steps=NEVER,
    eval_every=NEVER,
    batch_tokens=BATCH_TOKENS,
    optimizer="adam",
    betas=ADAM_BETAS,
    schedule="paper",
    lr=1.0,
    warmup=NOAM_WARMUP,
    clip_norm=CLIP_NORM,
    device="cpu",
)


def whole_pieces(vocabulary: Path) -> Tokenizer:
    """A tokeniser that only splits at spaces: the pieces are cut already."""
    pieces = vocabulary.read_text(encoding="utf-8").split()
    known = {piece: number for number, piece in enumerate([*SPECIALS, *pieces[len(SPECIALS) :]])}
    inner = hf.Tokenizer(hf.models.WordLevel(known, unk_token="<unk>"))
    inner.pre_tokenizer = hf.pre_tokenizers.WhitespaceSplit()
    return Tokenizer(inner)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--model", choices=MODELS, default="transformer")
    parser.add_argument("--precision", choices=("single", "bfloat16"), default="single")
    options = parser.parse_args()

    pieces = whole_pieces(options.corpus / "vocabulary.txt")
    config = TranslateConfig(joint=True, label_smoothing=LABEL_SMOOTHING)
    task = Translate.of_vocabularies(config, pieces, pieces)
    files = [str(options.corpus / f"train.{language}") for language in ("en", "de")]
    examples = Examples.of(task, read_rows(files, {"source": None, "target": None}))
    keep_freed_memory()  # as in every training of regard
    plan = PLAN.model_copy(update={"precision": options.precision})
    torch.manual_seed(42)
    model = MODELS[options.model].build(task.widths)
    watch = Stopwatch(options.warmup, options.seconds)
    with tempfile.TemporaryDirectory() as folder:
        training = Training(
            task, model, examples, [], plan, Path(folder), 42, torch.device("cpu"), d_model=D_MODEL
        )
        for event in run(training):
            if isinstance(event, Step) and not watch.step(event.tokens, event.loss):
                break
    name = "regard" if options.model == "transformer" else "regard_rnn"
    watch.report(name, model, "regard", "numpy")


if __name__ == "__main__":
    main()

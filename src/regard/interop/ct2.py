"""A folder for CTranslate2 (`regard[fast]`): its specification of a Transformer, filled tensor by tensor.

Positions are written as a table, whatever they are, so that none of its own conventions is relied on. It has
ALiBi in decoders only, and one relative bias for all layers where we have one for each: both are refused.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.attention import sinusoid
from regard.errors import RunError
from regard.interop.here import Search
from regard.interop.parity import Answer
from regard.interop.plain import written_out
from regard.interop.searching import for_translate_batch
from regard.interop.tokens import FILE, TARGET, open_tokenizers, write_tokenizers
from regard.models import Transformer, TransformerConfig
from regard.tasks.seq2seq import Seq2Seq
from regard.tasks.writer import NEVER_WRITTEN
from regard.text.vocabulary import SPECIALS

ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "gelu_tanh": "GELUTanh", "swiglu": "SWISH"}
CLOSED = [[SPECIALS[i]] for i in NEVER_WRITTEN]


def write(
    task: Seq2Seq[Any], model: Transformer, config: TransformerConfig, folder: Path, *, int8: bool = False
) -> None:
    if config.position in ("relative", "alibi"):
        raise _no_counterpart(f"position = {config.position!r}", "sinusoidal, learned or rotary positions")
    if config.copies:
        raise _no_counterpart("copies = true", "copies = false")
    ct2 = library()
    own, plain = written_out(model, config)
    spec = _outline(ct2.specs, plain)
    _fill(spec, {name: tensor.numpy() for name, tensor in own.items()}, plain)
    if plain.position != "rotary":
        n_positions = plain.max_positions if plain.position == "learned" else task.config.max_length + 1
        for side, stack in (("source", spec.encoder), ("target", spec.decoder)):
            stack.position_encodings.encodings = _positions(own, plain, side, n_positions).numpy()
    spec.config.layer_norm_epsilon = plain.norm_eps
    spec.register_source_vocabulary(task.source.names)
    spec.register_target_vocabulary(task.target.names)
    spec.validate()
    spec.optimize(quantization="int8" if int8 else None)
    spec.save(str(folder))
    write_tokenizers(task, folder)
    (folder / "README.md").write_text(_card(task), "utf-8")


def _no_counterpart(what: str, instead: str) -> RunError:
    return RunError(f"ct2: {what} has no counterpart in CTranslate2; train with {instead}, or export to onnx")


def library() -> Any:
    try:
        import ctranslate2
        import ctranslate2.specs
    except ImportError:
        raise RunError("ct2: needs ctranslate2; install it with: pip install 'regard[fast]'") from None
    return ctranslate2


def _outline(specs: Any, config: TransformerConfig) -> Any:
    rotary = {}
    if config.position == "rotary":
        rotary = {"rotary_dim": config.d_model // config.n_heads, "rotary_interleave": False}
    shared = {
        "pre_norm": config.norm == "pre",
        "activation": specs.Activation[ACTIVATIONS[config.activation]],
        "ffn_glu": config.activation == "swiglu",
        **rotary,
    }
    encoder = specs.TransformerEncoderSpec(config.n_encoder_layers, config.n_heads, **shared)
    decoder = specs.TransformerDecoderSpec(config.n_decoder_layers, config.n_heads, **shared)
    return specs.TransformerSpec(encoder, decoder)


def _fill(spec: Any, own: dict[str, Any], config: TransformerConfig) -> None:
    def dense(into: Any, *names: str) -> None:
        """Maps of the same input, one above the other."""
        into.weight = _stacked([own[f"{name}.weight"] for name in names])
        into.bias = _stacked([own[f"{name}.bias"] for name in names])

    def norm(into: Any, name: str) -> None:
        into.gamma, into.beta = own[f"{name}.weight"], own[f"{name}.bias"]

    for side, stack in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        for number, layer in enumerate(stack.layer):
            at = f"{side}.layers.{number}"
            dense(layer.self_attention.linear[0], *(f"{at}.self.{part}" for part in "qkv"))
            dense(layer.self_attention.linear[1], f"{at}.self.o")
            norm(layer.self_attention.layer_norm, f"{at}.self_norm")
            if side == "decoder":
                dense(layer.attention.linear[0], f"{at}.cross.q")
                dense(layer.attention.linear[1], f"{at}.cross.k", f"{at}.cross.v")
                dense(layer.attention.linear[2], f"{at}.cross.o")
                norm(layer.attention.layer_norm, f"{at}.cross_norm")
            gated = config.activation == "swiglu"
            dense(layer.ffn.linear_0, f"{at}.ff.gate" if gated else f"{at}.ff.inner")
            if gated:
                dense(layer.ffn.linear_0_noact, f"{at}.ff.inner")
            dense(layer.ffn.linear_1, f"{at}.ff.outer")
            norm(layer.ffn.layer_norm, f"{at}.ff_norm")
        if config.norm == "pre":
            norm(stack.layer_norm, f"{side}.norm")
    target = own["embed_target.weight"]
    spec.encoder.embeddings[0].weight = own.get("embed_source.weight", target)
    spec.decoder.embeddings.weight = target
    spec.decoder.projection.weight = own.get("output.weight", target)


def _stacked(arrays: Sequence[Any]) -> Any:
    return torch.cat([torch.from_numpy(array) for array in arrays]).numpy()


def _positions(own: dict[str, Tensor], config: TransformerConfig, side: str, n_positions: int) -> Tensor:
    """The table that a side adds to its embeddings; a shared embedding has one for both."""
    if config.position == "sinusoidal":
        return sinusoid(torch.arange(n_positions), config.d_model)
    if config.position == "learned":
        return own.get(f"embed_{side}.position.weight", own["embed_target.position.weight"])
    return torch.zeros(n_positions, config.d_model)


def _card(task: Seq2Seq[Any]) -> str:
    settings = for_translate_batch(task) | {"suppress_sequences": CLOSED}
    told = "\n".join(f"    {name}={value}," for name, value in settings.items())
    target = "source" if task.config.joint else f'Tokenizer.from_file("{TARGET}/{FILE}")'
    return f"""# A model for CTranslate2, trained and exported with regard

```python
import ctranslate2
from tokenizers import Tokenizer

source = Tokenizer.from_file("{FILE}")
target = {target}
translator = ctranslate2.Translator(".")
(answer,) = translator.translate_batch(
    [source.encode("your text").tokens],
{told}
)
print(target.decode([target.token_to_id(piece) for piece in answer.hypotheses[0]]))
```
"""


class Engine:
    """The folder as CTranslate2 loads it, with the tokenizers that lie in it."""

    def __init__(self, folder: Path, search: Search, *, int8: bool = False) -> None:
        ct2 = library()
        self.name = f"CTranslate2 {ct2.__version__}{' int8' if int8 else ''}"
        self.beam, self.most = search
        self.translator = ct2.Translator(
            str(folder), compute_type="int8" if int8 else "float32", intra_threads=torch.get_num_threads()
        )
        self.source, self.target = open_tokenizers(folder)

    def answer(self, texts: Sequence[str]) -> list[Answer]:
        found = self.translator.translate_batch(
            self._read(texts),
            beam_size=self.beam,
            length_penalty=0.0,
            min_decoding_length=0,
            max_decoding_length=self.most,
            max_input_length=0,
            suppress_sequences=CLOSED,
        )
        number = self.target.get_vocab().__getitem__
        written = [tuple(map(number, result.hypotheses[0])) for result in found]
        return [Answer(self.target.decode(list(ids)), ids, cut=len(ids) + 1 >= self.most) for ids in written]

    def score(self, texts: Sequence[str], answers: Sequence[Answer]) -> list[list[float]]:
        said = [list(map(self.target.id_to_token, answer.ids)) for answer in answers]
        return [
            list(found.log_probs)
            for found in self.translator.score_batch(self._read(texts), said, max_input_length=0)
        ]

    def _read(self, texts: Sequence[str]) -> list[list[str]]:
        """Pieces, the end included."""
        return [found.tokens for found in self.source.encode_batch(list(texts))]

"""Export to a folder for CTranslate2 (`regard[fast]`): its Transformer spec, filled tensor by tensor.

Positions are always written as a table, so that nothing depends on its own conventions. It supports ALiBi in
decoders only, and one relative bias for all layers where we have one for each; both are refused.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.attention import sinusoid
from regard.errors import RunError
from regard.interop.expanded_weights import expand_weights
from regard.interop.generation_config import for_translate_batch
from regard.interop.parity import Answer
from regard.interop.tokens import FILE, TARGET, open_tokenizers, write_tokenizers
from regard.interop.translation_parity import Search
from regard.models import Transformer, TransformerConfig
from regard.tasks.seq2seq import Seq2Seq
from regard.tasks.writer import NEVER_WRITTEN
from regard.text.vocabulary import SPECIALS

ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "gelu_tanh": "GELUTanh", "swiglu": "SWISH"}
N_POSITIONS = 2048
"""Positions of a sinusoid that are written, whatever max_length is, which CTranslate2 does not know: it fails
where a text or an answer has more.
"""
SUPPRESSED = [[SPECIALS[i]] for i in NEVER_WRITTEN]


def write(
    task: Seq2Seq[Any], model: Transformer, config: TransformerConfig, folder: Path, *, int8: bool = False
) -> None:
    if config.position in ("relative", "alibi"):
        raise _no_counterpart(f"position = {config.position!r}", "sinusoidal, learned or rotary positions")
    if config.copies:
        raise _no_counterpart("copies = true", "copies = false")
    ctranslate2 = import_ctranslate2()
    weights, expanded = expand_weights(model, config)
    spec = _empty_spec(ctranslate2.specs, expanded)
    _fill(spec, {name: tensor.numpy() for name, tensor in weights.items()}, expanded)
    if expanded.position != "rotary":
        is_learned = expanded.position == "learned"
        n_positions = expanded.max_positions if is_learned else max(N_POSITIONS, task.config.max_length + 1)
        for side, stack in (("source", spec.encoder), ("target", spec.decoder)):
            stack.position_encodings.encodings = _positions(weights, expanded, side, n_positions).numpy()
    spec.config.layer_norm_epsilon = expanded.norm_eps
    spec.register_source_vocabulary(task.source.tokenizer.names)
    spec.register_target_vocabulary(task.target.tokenizer.names)
    spec.validate()
    spec.optimize(quantization="int8" if int8 else None)
    spec.save(str(folder))
    write_tokenizers(task, folder)
    (folder / "README.md").write_text(_card(task), "utf-8")


def _no_counterpart(setting: str, instead: str) -> RunError:
    return RunError(
        f"ct2: {setting} has no counterpart in CTranslate2; train with {instead}, or export to onnx"
    )


def import_ctranslate2() -> Any:
    """Import ctranslate2; RunError with the command to install it if it is missing."""
    try:
        import ctranslate2
        import ctranslate2.specs
    except ImportError:
        raise RunError("ct2: needs ctranslate2; install it with: pip install 'regard[fast]'") from None
    return ctranslate2


def _empty_spec(specs: Any, config: TransformerConfig) -> Any:
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


def _fill(spec: Any, weights: dict[str, Any], config: TransformerConfig) -> None:
    def dense(into: Any, *names: str) -> None:
        """Fill one linear map with our maps of the same input, stacked."""
        into.weight = _stacked([weights[f"{name}.weight"] for name in names])
        into.bias = _stacked([weights[f"{name}.bias"] for name in names])

    def norm(into: Any, name: str) -> None:
        into.gamma, into.beta = weights[f"{name}.weight"], weights[f"{name}.bias"]

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
    target = weights["embed_target.weight"]
    spec.encoder.embeddings[0].weight = weights.get("embed_source.weight", target)
    spec.decoder.embeddings.weight = target
    spec.decoder.projection.weight = weights.get("output.weight", target)


def _stacked(arrays: Sequence[Any]) -> Any:
    return torch.cat([torch.from_numpy(array) for array in arrays]).numpy()


def _positions(weights: dict[str, Tensor], config: TransformerConfig, side: str, n_positions: int) -> Tensor:
    """Table that a side adds to its embeddings; a shared embedding has one for both sides."""
    if config.position == "sinusoidal":
        return sinusoid(torch.arange(n_positions), config.d_model)
    if config.position == "learned":
        return weights.get(f"embed_{side}.position.weight", weights["embed_target.position.weight"])
    return torch.zeros(n_positions, config.d_model)


def _card(task: Seq2Seq[Any]) -> str:
    settings = for_translate_batch(task) | {"suppress_sequences": SUPPRESSED}
    arguments = "\n".join(f"    {name}={value}," for name, value in settings.items())
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
{arguments}
)
print(target.decode([target.token_to_id(token) for token in answer.hypotheses[0]]))
```
"""


class CT2TranslationEngine:
    """The exported folder as CTranslate2 loads it, including its tokenizers."""

    def __init__(self, folder: Path, search: Search, *, int8: bool = False) -> None:
        ctranslate2 = import_ctranslate2()
        self.name = f"CTranslate2 {ctranslate2.__version__}{' int8' if int8 else ''}"
        self.beam, self.max_tokens = search
        self.translator = ctranslate2.Translator(
            str(folder), compute_type="int8" if int8 else "float32", intra_threads=torch.get_num_threads()
        )
        self.source, self.target = open_tokenizers(folder)

    def answer(self, texts: Sequence[str]) -> list[Answer]:
        results = self.translator.translate_batch(
            self._tokens(texts),
            beam_size=self.beam,
            length_penalty=0.0,
            min_decoding_length=0,
            max_decoding_length=self.max_tokens,
            max_input_length=0,
            suppress_sequences=SUPPRESSED,
        )
        token_id = self.target.get_vocab().__getitem__
        outputs = [tuple(map(token_id, result.hypotheses[0])) for result in results]
        return [
            Answer(self.target.decode(list(ids)), ids, truncated=len(ids) + 1 >= self.max_tokens)
            for ids in outputs
        ]

    def score(self, texts: Sequence[str], answers: Sequence[Answer]) -> list[list[float]]:
        targets = [list(map(self.target.id_to_token, answer.ids)) for answer in answers]
        scores = self.translator.score_batch(self._tokens(texts), targets, max_input_length=0)
        return [list(score.log_probs) for score in scores]

    def _tokens(self, texts: Sequence[str]) -> list[list[str]]:
        """Tokens of each text, EOS included."""
        return [encoding.tokens for encoding in self.source.encode_batch(list(texts))]

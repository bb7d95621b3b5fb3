"""BERT's pretraining (Devlin et al. 2019): its encoder with the heads for masked tokens and next sentences.

A masked token is predicted from the state at its position, through one dense layer with a norm; the output
matrix is the embedding's, only its bias is new. It is computed at masked positions alone, a seventh of all.
Next-sentence prediction goes through the pooler, which classifiers fine-tune.
"""

from collections.abc import Sequence
from typing import Any, Literal, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, model_validator
from torch import Tensor, nn

from regard.layers.feedforward import activated
from regard.layers.heads import Head, HeadInput, logits
from regard.layers.inputs import Inputs
from regard.layers.pooling import Pooler
from regard.linear import Linear
from regard.models.cooccurrence import ppmi_vectors
from regard.models.encoders import EncodingConfig
from regard.models.encoders.bert import BertConfig
from regard.models.widths import Widths


class BertPretrainingConfig(EncodingConfig):
    kind: Literal["bert_pretraining"] = "bert_pretraining"
    encoder: BertConfig = Field(BertConfig(), description="the encoder to pretrain")
    embeddings: Literal["random", "counted"] = Field(
        "random", description="how token embeddings start; counted: from co-occurrences in the training text"
    )

    @model_validator(mode="after")
    def _begin_once(self) -> Self:
        if self.embeddings != "random" and self.init_from is not None:
            raise ValueError(
                f"embeddings ({self.embeddings}): init_from has its own already; leave one of the two out"
            )
        return self

    @property
    def d_model(self) -> int:
        return self.encoder.d_model

    def build(self, widths: Widths) -> "BertPretraining":
        return BertPretraining(self, widths)

    def initialise(self, model: nn.Module, examples: Sequence[Any], task: Any) -> None:
        if self.embeddings == "counted":
            assert isinstance(model, BertPretraining)
            documents = cast(Any, examples).documents
            self.count(model, documents.values, documents.ends)
        super().initialise(model, examples, task)

    def count(self, model: "BertPretraining", tokens: NDArray[np.integer], ends: NDArray[np.integer]) -> None:
        """Starts embeddings from co-occurrences in documents that end at `ends`; others stay random."""
        weight_VD = model.encoder.embed.weight
        counted_VD = ppmi_vectors(tokens, ends, *weight_VD.shape).to(weight_VD)
        with torch.no_grad():
            weight_VD.copy_(torch.where(counted_VD.any(1, keepdim=True), counted_VD, weight_VD))

    def __str__(self) -> str:
        return f"bert to pretrain{self.origin}, d={self.encoder.d_model}, {self.encoder.n_layers} layers"


class BertPretraining(nn.Module):
    def __init__(self, config: BertPretrainingConfig, widths: Widths) -> None:
        super().__init__()
        d_model = config.encoder.d_model
        self.activation = config.encoder.activation
        self.encoder = config.encoder.build(widths.input)
        self.pooling = Pooler(d_model)
        self.hidden = Linear(d_model, d_model)
        self.hidden_norm = nn.LayerNorm(d_model, config.encoder.norm_eps)
        self.output_bias = nn.Parameter(torch.empty(widths.input["vocab"]))
        self.follows = Linear(d_model, 2)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.output_bias)

    def forward(self, inputs: Inputs, head: Head = logits) -> tuple[Tensor, Tensor]:
        """The `head` of the states at the `places` of hidden tokens, and scores_B2: follows, does not."""
        states_BTD = self.encoder(inputs).states_RTD
        at_N = inputs["places"][inputs["places"] >= 0]
        hidden_ND = activated(self.hidden(states_BTD.flatten(0, 1)[at_N]), self.activation)
        masked = head(HeadInput(self.hidden_norm(hidden_ND), self.encoder.embed.weight, self.output_bias))
        scores_B2: Tensor = self.follows(self.pooling(states_BTD, inputs["lengths"]))
        return masked, scores_B2

"""Training settings: everything about training that belongs neither to the model nor to the task."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from regard.config import Config

Share = Annotated[float, Field(ge=0, lt=1)]
DEFAULT_LIMITS = {"max_epochs": 20, "patience": 5}
"""Limits of a recipe that sets none."""
LIMITS = {*DEFAULT_LIMITS, "max_steps", "max_minutes"}


class TrainConfig(Config):
    max_epochs: int | None = Field(None, ge=1)
    max_steps: int | None = Field(None, ge=1)
    max_minutes: float | None = Field(None, gt=0, description="evaluation included; the model so far is kept")
    batch_tokens: Annotated[int, Field(ge=1)] | Literal["auto"] = Field(
        4096,
        description='rows × longest side, of the whole batch; "auto": 4096, in parts that fit into memory',
    )
    accumulate: int = Field(
        1, ge=1, description="split a batch into this many parts to save memory; same result"
    )
    optimizer: Literal["adam", "adamw", "muon"] = Field(
        "adam",
        description="adamw: weight_decay acts beside the gradient; muon: orthogonal steps for matrices",
    )
    lr: float = Field(
        1e-3, gt=0, description="the peak; for the paper's schedule a factor (the paper's is 1)"
    )
    betas: tuple[Share, Share] = (0.9, 0.98)
    eps: float = Field(1e-9, gt=0)
    weight_decay: float = Field(0.0, ge=0)
    schedule: Literal["paper", "inverse_sqrt", "cosine", "linear", "constant"] = "inverse_sqrt"
    warmup: int = Field(400, ge=0, description="steps")
    layer_decay: float = Field(
        1.0, gt=0, le=1, description="learning rate of an encoder's layer, as a share of the one's above it"
    )
    clip_norm: float = Field(1.0, ge=0, description="a longer gradient is shortened to this length; 0: never")
    eval_every: int | None = Field(
        None, ge=1, description="steps between validations; once an epoch by default"
    )
    save_every: int | None = Field(
        None, ge=1, description="steps between checkpoints; every validation saves one in any case"
    )
    save_minutes: float = Field(
        10.0, gt=0, description="a checkpoint at least this often, whatever the steps"
    )
    patience: int | None = Field(None, ge=1, description="validations without a better score before stopping")
    spike: float | None = Field(
        None, gt=1, description="leave out updates whose loss is this many times the median of the last 64"
    )
    ema: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="decay of a moving average of the weights, which is scored and kept; 0: no",
    )
    average: int = Field(
        1, ge=1, description="keep the average of the last k checkpoints, unless the best is clearly better"
    )
    log_every: int = Field(20, ge=1, description="steps between lines of metrics.jsonl")
    baselines: bool = Field(True, description="at the end, measure simple methods on the same rows")
    tensorboard: bool = Field(False, description="also write events for TensorBoard (needs regard[track])")
    shard: bool = Field(
        False, description="split weights, gradients and moments over torchrun's processes (FSDP2)"
    )
    precision: Literal["auto", "single", "bfloat16"] = Field(
        "auto",
        description="of the matrix products in training; auto: bfloat16 where the processor has units for it "
        "and d_model is at least 128",
    )
    compile: bool = Field(
        False, description="compile the model with torch.compile: minutes at first, then perhaps faster"
    )
    device: str = Field("auto", description="auto, cpu, cuda, cuda:1, mps")
    workers: int = Field(
        1, ge=0, le=64, description="threads that make the next batches; they change nothing but time"
    )
    threads: int | None = Field(None, ge=1, le=1024, description="CPU threads; all cores by default")

    @property
    def tokens_per_batch(self) -> int:
        """Token budget of one global batch."""
        return 4096 if self.batch_tokens == "auto" else self.batch_tokens

    @model_validator(mode="before")
    @classmethod
    def _add_limits(cls, content: Any) -> Any:
        if isinstance(content, dict) and not content.keys() & LIMITS:
            return DEFAULT_LIMITS | content
        return content

    @model_validator(mode="after")
    def _check(self) -> "TrainConfig":
        if (
            self.max_epochs is None
            and self.max_steps is None
            and self.max_minutes is None
            and self.patience is None
        ):
            raise ValueError("training would never end; give max_epochs, max_steps, max_minutes or patience")
        if self.optimizer == "muon" and self.shard:
            raise ValueError("muon cannot update sharded matrices; set shard = false, or use adamw")
        if self.optimizer == "muon" and self.layer_decay < 1:
            raise ValueError("muon has one learning rate for all layers; set layer_decay = 1, or use adamw")
        if self.schedule in ("cosine", "linear") and self.max_steps is None and self.max_epochs is None:
            raise ValueError(
                f"the {self.schedule} schedule needs a known last step; give max_steps or max_epochs"
            )
        return self

"""One file = one model: its config on top, the module below. The union is closed and greppable."""

from typing import Annotated

from pydantic import Field

from regard.models.answerer import Answerer, AnswererConfig
from regard.models.bert4rec import BERT4Rec, BERT4RecConfig
from regard.models.bert_pretraining import BertPretraining, BertPretrainingConfig
from regard.models.captioner import Captioner, CaptionerConfig
from regard.models.classifier import Classifier, ClassifierConfig
from regard.models.ctc import CTC, CTCConfig
from regard.models.encoders import EncoderConfig, EncodingConfig
from regard.models.encoders.bert import Bert, BertConfig
from regard.models.encoders.cnn import CNNConfig
from regard.models.encoders.vit import ViTConfig
from regard.models.ensemble import Ensemble
from regard.models.forecaster import Forecaster, ForecasterConfig
from regard.models.gpt import GPT, GPTConfig
from regard.models.gru4rec import GRU4Rec, GRU4RecConfig
from regard.models.hmm import HMM, HMMConfig
from regard.models.linear_forecaster import DLinear, DLinearConfig, NLinear, NLinearConfig
from regard.models.relater import Relater, RelaterConfig
from regard.models.rnn_forecaster import RNNForecaster, RNNForecasterConfig
from regard.models.rnn_seq2seq import RNNConfig, RNNSeq2Seq
from regard.models.sasrec import SASRec, SASRecConfig
from regard.models.tagger import Tagger, TaggerConfig
from regard.models.transducer import Transducer, TransducerConfig
from regard.models.transformer import Transformer, TransformerConfig
from regard.models.widths import Widths

ModelConfig = Annotated[
    TransformerConfig
    | RNNConfig
    | ClassifierConfig
    | CaptionerConfig
    | TaggerConfig
    | HMMConfig
    | RelaterConfig
    | AnswererConfig
    | GPTConfig
    | BertPretrainingConfig
    | ForecasterConfig
    | NLinearConfig
    | DLinearConfig
    | RNNForecasterConfig
    | SASRecConfig
    | BERT4RecConfig
    | GRU4RecConfig
    | TransducerConfig
    | CTCConfig,
    Field(discriminator="kind"),
]

__all__ = [
    "CTC",
    "GPT",
    "HMM",
    "Answerer",
    "AnswererConfig",
    "BERT4Rec",
    "BERT4RecConfig",
    "Bert",
    "BertConfig",
    "BertPretraining",
    "BertPretrainingConfig",
    "CNNConfig",
    "CTCConfig",
    "Captioner",
    "CaptionerConfig",
    "Classifier",
    "ClassifierConfig",
    "DLinear",
    "DLinearConfig",
    "EncoderConfig",
    "EncodingConfig",
    "Ensemble",
    "Forecaster",
    "ForecasterConfig",
    "GPTConfig",
    "GRU4Rec",
    "GRU4RecConfig",
    "HMMConfig",
    "ModelConfig",
    "NLinear",
    "NLinearConfig",
    "RNNConfig",
    "RNNForecaster",
    "RNNForecasterConfig",
    "RNNSeq2Seq",
    "Relater",
    "RelaterConfig",
    "SASRec",
    "SASRecConfig",
    "Tagger",
    "TaggerConfig",
    "Transducer",
    "TransducerConfig",
    "Transformer",
    "TransformerConfig",
    "ViTConfig",
    "Widths",
]

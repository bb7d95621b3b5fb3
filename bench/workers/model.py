"""The two models every tool trains in this benchmark, and what they cost in matrix products.

The Transformer is post-norm with ReLU and sinusoidal positions; one matrix serves both embeddings and the
output. The recurrent model is half of JoeyNMT's published `iwslt14_deen_bpe` recipe: a bidirectional GRU, a
GRU decoder whose new state attends (additive score), the attentional vector fed back as input; the
embeddings are shared, the output has its own matrix.

Dropout in the Transformer is the paper's in every tool: on embeddings and on each residual branch, neither
inside the feed-forward nor on attention weights. In the recurrent model it falls where each library puts it.
"""

VOCABULARY = 8000
DROPOUT = 0.1
LABEL_SMOOTHING = 0.1
ADAM_BETAS = (0.9, 0.98)
CLIP_NORM = 1.0
NOAM_WARMUP = 1000
BATCH_TOKENS = 4096

D_MODEL = 256
D_FF = 1024
N_HEADS = 4
N_LAYERS = 3

D_EMBED = 256
D_ENCODER = 256  # each direction
D_DECODER = 512


def noam_rate(step: int) -> float:
    """The paper's learning rate, step counted from 1."""
    return float(D_MODEL**-0.5 * min(step**-0.5, step * NOAM_WARMUP**-1.5))


def transformer_flops(source_per_target: float) -> float:
    """Floating-point operations of training per target token: 2 per multiply-add, forward + twice backward.

    Counts real tokens only, and leaves out the attention products themselves (under 2 % at these lengths).
    """
    square, inner = D_MODEL**2, 2 * D_MODEL * D_FF
    source = N_LAYERS * (4 * square + inner + 2 * square)  # the last two: keys and values of cross-attention
    target = N_LAYERS * (4 * square + inner + 2 * square) + D_MODEL * VOCABULARY
    return 6.0 * (source_per_target * source + target)


def rnn_flops(source_per_target: float) -> float:
    """As `transformer_flops`, for the recurrent model."""
    memory = 2 * D_ENCODER
    source = 2 * 3 * D_ENCODER * (D_EMBED + D_ENCODER) + memory * D_DECODER
    cell = 3 * D_DECODER * (D_EMBED + 2 * D_DECODER)
    target = cell + D_DECODER**2 + (D_DECODER + memory) * D_DECODER + D_DECODER * VOCABULARY
    return 6.0 * (source_per_target * source + target)

from pathlib import Path
from typing import Annotated

import typer

from regard.cli import console
from regard.cli.files import free, write


def positions(
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The picture; by default positions.svg.", show_default=False),
    ] = None,
    n_positions: Annotated[
        int, typer.Option("--positions", min=1, max=1000, help="Rows of the picture.")
    ] = 50,
    width: Annotated[int, typer.Option(min=2, max=4096, help="Dimensions of the model.")] = 128,
) -> None:
    """Draw the sinusoidal positions of the Transformer paper."""
    import torch

    from regard.attention.position import sinusoid
    from regard.explain.positions import heatmap_svg

    table_TD = sinusoid(torch.arange(n_positions), width).numpy()
    console.line(str(write(out or free("positions.svg"), heatmap_svg(table_TD))))

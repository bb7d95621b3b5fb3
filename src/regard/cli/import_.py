from pathlib import Path
from typing import Annotated

import typer

from regard.cli import console


def import_(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="A folder of Hugging Face.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="A new folder for the model.", show_default=False)],
) -> None:
    """Read a translator back from a Hugging Face folder.

    Only safetensors and JSON are read; no code and no pickle, whatever the folder holds.
    """
    from regard.export.foreign import import_folder

    import_folder(folder, out)
    console.line(f"wrote {out}")
    console.line(f'  regard predict {out} "your text"')

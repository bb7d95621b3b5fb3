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
    """Read a model from a Hugging Face folder.

    A BERT, a GPT-2, or what left regard. Only safetensors, JSON and word lists are read; no code and no
    pickle, whatever the folder holds.
    """
    from regard.interop.importing import import_folder
    from regard.tasks import TASKS
    from regard.tasks.task import typed

    kind = import_folder(folder, out, lambda remark: console.line(remark, "dim", console=console.ERR))
    console.line(f"wrote {out}")
    if kind is not None:
        console.line(f"  regard predict {out} {typed(TASKS[kind], TASKS[kind].settings())}")
    else:
        console.line("an encoder alone: it embeds texts, or begins a training (model.init_from)", "dim")
        console.line(f'  regard embed {out} "your text"')

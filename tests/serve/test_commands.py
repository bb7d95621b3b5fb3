"""The curl commands of docs/serve.md run, and get the answers it promises."""

import re
import subprocess
from pathlib import Path

from served import Served

PAGE = Path(__file__).parents[2] / "docs" / "serve.md"


def test_the_commands_of_the_page_run(server: Served) -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    commands = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    local = [command for command in commands if "localhost" in command]
    assert len(local) == 5
    for command in local:
        here = command.replace("localhost:8000", f"localhost:{server.port}")
        here = here.replace('"reviews"', '"films"').replace('"demo"', '"numbers"')
        found = subprocess.run(
            here.replace("curl ", "curl --silent --show-error --fail "),
            shell=True,
            capture_output=True,
            text=True,
            check=True,
        )
        assert '"model"' in found.stdout

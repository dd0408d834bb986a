"""`python -m support.command_of_a_box BOX WORDS`: `agentbox WORDS` for the box with the address, token
and workspace of BOX, a JSON object, instead of the one in a state directory.
"""

import json
import sys
from pathlib import Path

from agentbox.client import BoxClient
from agentbox.host.cli import main
from agentbox.host.cli.commands.dev import completion
from agentbox.host.cli.context import CliContext


def run(box: dict[str, str | None], words: list[str]) -> None:
    """Ends this process."""
    workspace = box["workspace"]
    completion._GIVE_UP_SECONDS = 60  # after 300 ms nothing is printed
    CliContext.workspace_directory = lambda cli: workspace and Path(workspace)  # type: ignore
    CliContext.client = lambda cli: BoxClient(box["url"], token=box["token"], timeout=30)  # type: ignore
    main.main(words)


if __name__ == "__main__":
    run(json.loads(sys.argv[1]), sys.argv[2:])

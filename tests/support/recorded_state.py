"""Makes `tests/data/states/<release>`: a small state of this release's own making, as a snapshot that
is not encrypted, and what the box answered. Each release runs it once, before it is published:
`PYTHONPATH=tests .venv/bin/python -m support.recorded_state`. A directory is never edited after.
"""

import json
import sys
import tempfile
from pathlib import Path

from agentbox import __version__
from agentbox.backup.archive.repository import ArchiveRepository
from support.api_box import ApiBox
from support.filled_box import answers, fill
from support.staged_state import stage

STATES = Path(__file__).resolve().parents[1] / "data" / "states"
ANSWERS = "answers.json"
_AGENT = {"name": "done", "argv": ["sh", "-c", "echo output"], "profile": "sandboxed"}


def record(folder: Path) -> None:
    """Raises FileExistsError if it is there."""
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="abx-", dir="/var/tmp") as prefix:
        with ApiBox(Path(prefix) / "box") as box, box.client() as client:
            fill(client, claim=False)  # a lease ends with time
            client.tokens.create("reader", scopes=["beads:read"])
            client.agents.run_once(_AGENT)
            head, _digest = client.events.head()
            seen = {"until": head, "answers": answers(client, head)}
        cut = stage(box.paths, Path(prefix) / "staged", snapshot=f"state-{__version__}")
        ArchiveRepository(folder, None).write(Path(prefix) / "staged")
    (folder / "lock").unlink(missing_ok=True)
    assert cut.seq >= head
    (folder / ANSWERS).write_text(json.dumps(seen, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    record(STATES / __version__)
    sys.stdout.write(f"{STATES / __version__}\n")

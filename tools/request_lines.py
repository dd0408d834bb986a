"""Writes `agentbox/client/request_lines.py`, what clients need of the table of operations. Run it
after a change of `agentbox/contracts`; tests/unit/client/test_request_lines.py fails until then.

The table itself would cost each command of the CLI 30 to 60 ms.
"""

import subprocess
import sys
from typing import Final

from agentbox.contracts.registry import ROUTES
from agentbox.core.paths import CHECKOUT

TARGET: Final = CHECKOUT / "agentbox/client/request_lines.py"
_HEAD: Final = '''# Written by tools/request_lines.py from agentbox/contracts.
"""Method, path, query parameters and kind of each operation, by name."""

from collections.abc import Mapping
from typing import Final

from agentbox.contracts.routes.request_line import RequestLine

REQUEST_LINES: Final[Mapping[str, RequestLine]] = {
    line.name: line
    for line in (
'''


def generate() -> str:
    """The text of the file."""
    rows = "".join(
        f"RequestLine{(route.name, route.method, route.path, route.query, route.stream)!r},\n"
        for route in ROUTES
    )
    argv = [sys.executable, "-m", "ruff", "format", "--quiet", f"--stdin-filename={TARGET}", "-"]
    return subprocess.run(
        argv, input=f"{_HEAD}{rows})}}\n", capture_output=True, text=True, check=True, cwd=CHECKOUT
    ).stdout


if __name__ == "__main__":
    TARGET.write_text(generate())

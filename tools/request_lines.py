"""Writes `agentbox/client/request_lines.py`, what clients need of the table of operations. Run it
after a change of `agentbox/contracts`; tests/unit/client/test_request_lines.py fails until then.

The table itself would cost each command of the CLI 30 to 60 ms.
"""

import subprocess
import sys
from typing import Final

from agentbox.contracts.routes.operation import Operation
from agentbox.contracts.routes.registry import RESOURCES
from agentbox.contracts.routes.route import Route
from agentbox.core.paths import CHECKOUT

TARGET: Final = CHECKOUT / "agentbox/client/request_lines.py"
_HEAD: Final = '''# Written by tools/request_lines.py from agentbox/contracts.
"""What a client needs of each operation, by the name of its route."""

from collections.abc import Mapping
from typing import Final

from agentbox.contracts.routes.request_line import RequestLine


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


REQUEST_LINES: Final[Mapping[str, RequestLine]] = {
    line.name: line
    for line in (
'''


def generate() -> str:
    """The text of the file."""
    rows = "".join(
        f"RequestLine({_line(route, row)}),\n"
        for resource in RESOURCES
        for route, row in zip(
            resource.routes, [row for row in resource.operations if row.http], strict=True
        )
    )
    argv = [sys.executable, "-m", "ruff", "format", "--quiet", f"--stdin-filename={TARGET}", "-"]
    return subprocess.run(
        argv, input=f"{_HEAD}{rows})}}\n", capture_output=True, text=True, check=True, cwd=CHECKOUT
    ).stdout


def _line(route: Route, row: Operation) -> str:
    names = f'_names("{" ".join(route.query)}")' if len(route.query) > 2 else repr(route.query)
    rest = (route.stream, row.name, row.idempotent)
    return ", ".join([*map(repr, (route.name, route.method, route.path)), names, *map(repr, rest)])


if __name__ == "__main__":
    TARGET.write_text(generate())

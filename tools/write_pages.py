"""Writes the generated pages of docs/ and tests/golden/openapi.json: all of them, or those named.

`--check` writes nothing: it prints the files that are stale, and the exit code is 1 if there are
any. Exit 2: an unknown name.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Final

from reference import agent_api, api, cli, completion, features, limits, manifest, rules

_MODULES: Final = (agent_api, api, cli, completion, features, limits, manifest, rules)
PAGES: Final[Mapping[str, ModuleType]] = {
    module.__name__.rpartition(".")[2]: module for module in _MODULES
}


def outputs(*names: str) -> dict[Path, str]:
    """File -> text, of these pages or of all."""
    files: dict[Path, str] = {}
    for name in names or PAGES:
        files |= PAGES[name].outputs()
    return files


def main(arguments: list[str]) -> int:
    """Returns the exit code."""
    names = [word for word in arguments if word != "--check"]
    if unknown := [name for name in names if name not in PAGES]:
        sys.stderr.write(f"unknown: {', '.join(unknown)}; pages: {', '.join(PAGES)}\n")
        return 2
    files = outputs(*names)
    if "--check" in arguments:
        stale = [path for path, text in files.items() if path.read_text(encoding="utf-8") != text]
        sys.stdout.writelines(f"stale: {path}\n" for path in stale)
        return int(bool(stale))
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

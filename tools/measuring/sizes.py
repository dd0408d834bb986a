"""How much there is: files, lines, tokens, copies."""

import ast
import io
import re
import shutil
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter
from pathlib import Path
from typing import Final

from measuring.sources import PACKAGE, TESTING, Module, tracked

_LAYOUT: Final = frozenset(
    {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENCODING,
        tokenize.ENDMARKER,
    }
)
_SKIP: Final = re.compile(r"[ ]*# fmt: (skip|off|on).*")
_LEAST_BODY: Final = 300  # characters of a syntax tree; a shorter body is a copy of nothing


def entries(modules: list[Module]) -> list[str]:
    """What lies directly in the package."""
    found = {module.path.relative_to(PACKAGE).parts[0] for module in modules}
    return sorted(found - {"__init__.py", "__main__.py"})


def packages(modules: list[Module]) -> list[tuple[int, str]]:
    """Files and packages in each package below the top, `__init__` aside; the largest first."""
    parents: Counter[str] = Counter()
    for module in modules:
        if (parent := module.name.rpartition(".")[0]) not in ("", PACKAGE.name):
            parents[parent] += 1
    return sorted(((count, name) for name, count in parents.items()), reverse=True)


def lines(modules: list[Module]) -> int:
    return sum(len(module.lines) for module in modules)


def lines_at(width: int) -> int:
    """Lines of the product as the formatter writes it at that width, nothing exempt."""
    with tempfile.TemporaryDirectory() as folder:
        leave_out = shutil.ignore_patterns(TESTING, "__pycache__")
        copy = Path(shutil.copytree(PACKAGE, Path(folder) / PACKAGE.name, ignore=leave_out))
        for path in copy.rglob("*.py"):
            path.write_text(_SKIP.sub("", path.read_text(encoding="utf-8")), encoding="utf-8")
        call = (
            sys.executable,
            "-m",
            "ruff",
            "format",
            "--isolated",
            "--quiet",
            f"--line-length={width}",
        )
        subprocess.run([*call, str(copy)], check=True)
        return sum(
            len(path.read_text(encoding="utf-8").splitlines()) for path in copy.rglob("*.py")
        )


def tokens(modules: list[Module]) -> int:
    """Tokens without comments, docstrings and layout."""
    return sum(
        token.type not in _LAYOUT and token.start not in module.docstrings
        for module in modules
        for token in tokenize.generate_tokens(io.StringIO(module.text).readline)
    )


def widths(modules: list[Module]) -> dict[str, int]:
    """Lines beyond 100 and 120 columns, the longest, and how many are exempt from formatting."""
    found = [len(line) for module in modules for line in module.lines]
    return {
        "over 100": sum(width > 100 for width in found),
        "over 120": sum(width > 120 for width in found),
        "longest": max(found),
        "fmt: skip": sum(len(_SKIP.findall(module.text)) for module in modules),
    }


def class_names(modules: list[Module]) -> dict[str, int]:
    """How many names more than one class has: public ones, and private ones."""
    kinds = (node for module in modules for node in ast.walk(module.tree))
    found = Counter(node.name for node in kinds if isinstance(node, ast.ClassDef))
    shared = [name for name, count in found.items() if count > 1]
    private = sum(name.startswith("_") for name in shared)
    return {"public class names": len(shared) - private, "private class names": private}


def bodies(modules: list[Module]) -> int:
    """Bodies of functions that stand in the code more than once, docstrings aside."""
    found = Counter(
        text
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and len(text := _body(node)) >= _LEAST_BODY
    )
    return sum(count > 1 for count in found.values())


def data_lines() -> dict[str, int]:
    """Lines of data in git outside of the package, by folder."""
    folders = ("tests/golden", "bench/results", "schema", "tests/rules/cases")
    return {
        folder: sum(_length(path) for path in tracked(folder) if path.suffix != ".py")
        for folder in folders
    }


def _length(path: Path) -> int:
    return len(path.read_bytes().splitlines())


def _body(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return ast.dump(ast.Module(body, []))

"""The files that are measured: those that git knows, parsed once."""

import ast
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGE: Final = ROOT / "agentbox"
TESTING: Final = "testing"  # the package of test code
_OWNERS: Final = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Module:
    """One Python file. `name` is what it is imported as; a package's is that of its folder."""

    path: Path
    text: str

    @cached_property
    def name(self) -> str:
        parts = self.path.relative_to(ROOT).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @cached_property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @property
    def is_generated(self) -> bool:
        return self.text.startswith("# Written by tools/")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @cached_property
    def docstrings(self) -> frozenset[tuple[int, int]]:
        """Where each begins: line and column."""
        bodies = (node.body for node in ast.walk(self.tree) if isinstance(node, _OWNERS))
        first = (body[0] for body in bodies if body and isinstance(body[0], ast.Expr))
        return frozenset(
            (one.lineno, one.col_offset)
            for one in (expression.value for expression in first)
            if isinstance(one, ast.Constant) and isinstance(one.value, str)
        )

    @cached_property
    def texts(self) -> list[str]:
        """Every text of the code but docstrings."""
        return [
            node.value
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and (node.lineno, node.col_offset) not in self.docstrings
        ]


def tracked(*patterns: str) -> list[Path]:
    """Files that git knows, or would take."""
    call = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "--"]
    listed = subprocess.run([*call, *patterns], capture_output=True, text=True, check=True)
    return [
        path for name in sorted({*listed.stdout.splitlines()}) if (path := ROOT / name).is_file()
    ]


def modules() -> list[Module]:
    """Every file of the package."""
    found = tracked("agentbox/*.py", "agentbox/**/*.py")
    return [Module(path, path.read_text(encoding="utf-8")) for path in found]


def product() -> list[Module]:
    """The same without test code."""
    return [module for module in modules() if module.path.relative_to(PACKAGE).parts[0] != TESTING]

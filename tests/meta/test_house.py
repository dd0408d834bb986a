"""The conventions of the source tree (docs/adr/0002)."""

import ast
import re
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CEILING = 300
MEDIAN = 130


def tracked(*patterns: str) -> list[Path]:
    """Files that git tracks, so that local build products do not count."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [
        ROOT / name for name in sorted(set(listed.stdout.splitlines())) if (ROOT / name).is_file()
    ]


SUPPORT = tracked("testkit/**.py", "tests/support/**.py")
SOURCES = tracked("agentbox/**.py", "agentbox/*.py") + SUPPORT
TESTS = [path for path in tracked("tests/**.py") if path not in SUPPORT]
TOOLS = tracked("tools/**.py", "tools/*.py")


@cache
def parsed(path: Path) -> ast.Module:
    """Several checks read each source."""
    return ast.parse(path.read_text())


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def each(paths: list[Path]) -> Callable[[Callable[[Path], None]], Callable[[], None]]:
    """One test of all of these files, which names every file that the check fails on."""

    def of(check: Callable[[Path], None]) -> Callable[[], None]:
        def test() -> None:
            offenders = {}
            for path in paths:
                try:
                    check(path)
                except AssertionError as error:
                    offenders[name_of(path)] = str(error)
            assert not offenders, "\n".join(f"{name}: {why}" for name, why in offenders.items())

        test.__name__, test.__doc__ = check.__name__, check.__doc__
        return test

    return of


def test_there_is_something_to_check() -> None:
    """The lists that the other checks walk are not empty."""
    assert len(SOURCES) > 50
    assert len(TESTS) > 20
    assert len(TOOLS) > 10


@each(SOURCES + TESTS + TOOLS + tracked("nix/**.nix", "nix/*.nix", "*.sh", "flake.nix"))
def test_files_can_be_read_in_one_sitting(path: Path) -> None:
    """No file is longer than 300 lines; a table that a tool writes is not read."""
    if path.read_text().startswith("# Written by tools/"):
        return
    lines = len(path.read_text().splitlines())
    assert lines <= CEILING, f"{name_of(path)}: {lines} lines"


def test_the_entry_points_stay_thin() -> None:
    """agentbox.sh and flake.nix stay under 60 lines."""
    for name in ("agentbox.sh", "flake.nix"):
        assert len((ROOT / name).read_text().splitlines()) < 60, name


def test_most_files_are_short() -> None:
    """The median source file stays near a hundred lines."""
    lengths = sorted(len(path.read_text().splitlines()) for path in SOURCES)
    assert lengths[len(lengths) // 2] <= MEDIAN


@each(SOURCES)
def test_only_settings_reads_the_environment(path: Path) -> None:
    """`os.environ` and `os.getenv` stand in agentbox/core/paths.py and nowhere else."""
    if name_of(path) != "agentbox/core/paths.py":
        assert not re.search(r"\bos\.(environb?|getenvb?|putenv|unsetenv)\b", path.read_text())
        imported = {
            name.name
            for node in ast.walk(parsed(path))
            if isinstance(node, ast.ImportFrom) and node.module == "os"
            for name in node.names
        }
        assert not imported & {"environ", "environb", "getenv", "getenvb", "putenv", "unsetenv"}


@each([p for p in SOURCES + TOOLS if p.name == "__init__.py"])
def test_package_files_only_re_export(path: Path) -> None:
    """`__init__.py` holds a docstring, imports and `__all__`, and no code."""
    allowed = (ast.Import, ast.ImportFrom, ast.Expr, ast.Assign, ast.AnnAssign, ast.If)
    lazy = {"__getattr__", "__dir__"}
    for node in parsed(path).body:
        assert isinstance(node, allowed) or (
            isinstance(node, ast.FunctionDef) and node.name in lazy
        ), f"line {node.lineno}"


@each(SOURCES + TOOLS)
def test_no_failure_is_hidden(path: Path) -> None:
    """No bare `except`, no `except Exception: pass`, no `suppress(Exception)`, no `NotImplementedError` as a stub."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ExceptHandler):
            assert node.type is not None, f"line {node.lineno}: bare except"
            assert not (
                _broad(node.type) and all(isinstance(step, ast.Pass) for step in node.body)
            ), f"line {node.lineno}"
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
            assert not any(_broad(kind) for kind in node.args), f"line {node.lineno}"
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Name | ast.Call):
            target = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            assert not (isinstance(target, ast.Name) and target.id == "NotImplementedError"), (
                f"line {node.lineno}"
            )


def _broad(kind: ast.expr) -> bool:
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return any(
        isinstance(one, ast.Name) and one.id in {"Exception", "BaseException"} for one in kinds
    )


@each(tracked("*.sh", ".ci/run", "Makefile", "nix/**.nix"))
def test_no_shell_line_swallows_a_failure(path: Path) -> None:
    """`|| true`, also written as `|| :`, is used nowhere."""
    assert not re.search(r"\|\|\s*(true\b|:(\s|$))", path.read_text())


@each(TESTS)
def test_tests_state_claims(path: Path) -> None:
    """Every test has a docstring, none asserts a constant, and `time.sleep` stands in loops that wait for a condition only."""
    tree = parsed(path)
    waiting = {
        id(node)
        for loop in ast.walk(tree)
        if isinstance(loop, ast.While)
        for node in ast.walk(loop)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith(
            "test_"
        ):
            assert ast.get_docstring(node), f"{node.name} has no docstring"
        if isinstance(node, ast.Assert):
            assert not isinstance(node.test, ast.Constant), f"line {node.lineno}: cannot fail"
        if isinstance(node, ast.Call) and id(node) not in waiting:
            assert ast.unparse(node.func) != "time.sleep", f"line {node.lineno}: sleeps"


@each(tracked("agentbox.lock", "flake.lock", "requirements.*"))
def test_locks_hold_hashes_and_no_address(path: Path) -> None:
    """Lock files name no host and no URL."""
    text = path.read_text()
    assert "://" not in text
    assert not re.search(r"\b(https?|ftp|file):", text)


def test_the_page_has_every_layer() -> None:
    """docs/architecture.md shows the layers of .importlinter, in their order, those of one layer together."""
    held = (ROOT / ".importlinter").read_text().split("layers =\n")[1].split("\n\n")[0]
    shown = (
        (ROOT / "docs/architecture.md").read_text().split("go down only\n```\n")[1].split("```")[0]
    )
    rows = [re.split(r"\s{2,}", row)[0] for row in shown.splitlines()]
    layers = "\n".join(rows).replace("|\n", "| ").splitlines()
    assert [set(re.findall(r"\w+", layer)) for layer in layers] == [
        set(re.findall(r"\w+", layer)) for layer in held.splitlines()
    ]

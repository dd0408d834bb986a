"""Large matrices and properties run as a sample, and further transports with the clauses that depend on one, unless
`--full` is given. The sample of a matrix follows from a seed, which the report names."""

from __future__ import annotations

import hashlib
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable
from operator import attrgetter
from types import SimpleNamespace

import pytest
from hypothesis import settings

from agentbox.core.paths import CHECKOUT

EXAMPLES, ALL_EXAMPLES = 40, 300
"""Of each property whose settings name no number, without `--full` and with it."""
OneOfEach = Callable[[Iterable[str], Callable[[str], str]], list[str]]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--full",
        action="store_true",
        help="Every case of a test that is marked `sampled`, and more examples and lives.",
    )
    parser.addoption(
        "--sample-seed", metavar="TEXT", help="Which sample of them; without it the commit decides."
    )


def pytest_configure(config: pytest.Config) -> None:
    """The seed, before processes are started that share it, and the number of examples, before tests are imported."""
    settings.register_profile(
        "agentbox", max_examples=ALL_EXAMPLES if config.option.full else EXAMPLES
    )
    settings.load_profile("agentbox")
    if config.option.sample_seed is None:
        head = ["git", "-C", str(CHECKOUT), "rev-parse", "--short=12", "HEAD"]
        done = subprocess.run(head, capture_output=True, text=True, check=False)
        config.option.sample_seed = done.stdout.strip() or "no-commit"


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Which sample it was: `-q` shows no header."""
    if config.option.full:
        terminalreporter.write_line("sample: none, every case ran")
    else:
        terminalreporter.write_line(
            f"sample: --sample-seed={config.option.sample_seed} (--full runs every case)"
        )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves in `items` the sample of each mark, and of each transport its clauses. What was named on the command line itself is never left out."""
    if config.option.full or config.option.keyword or any("::" in word for word in config.args):
        return
    families: defaultdict[tuple[str, ...], list[pytest.Item]] = defaultdict(list)
    shares: dict[tuple[str, ...], int] = {}
    for item in items:
        if (found := _family(item)) is not None:
            family, shares[found[0]] = found
            families[family].append(item)
    seed = config.option.sample_seed
    left_out = {item.nodeid for item in items if _needs_no_transport(item)} | {
        item.nodeid
        for family, members in families.items()
        for item in sorted(members, key=lambda item: _rank(seed, item.nodeid))[
            -(-len(members) // shares[family]) :
        ]
    }
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left_out])
        items[:] = [item for item in items if item.nodeid not in left_out]


def _needs_no_transport(item: pytest.Item) -> bool:
    """Whether it is inherited by a class that is marked `transport`, and is no clause that depends on one."""
    for node, _mark in item.iter_markers_with_node("transport"):
        if isinstance(node, pytest.Class) and item.originalname not in vars(node.obj):  # type: ignore[attr-defined]
            return not getattr(item.function, "transport", False)  # type: ignore[attr-defined]
    return False


def _family(item: pytest.Item) -> tuple[tuple[str, ...], int] | None:
    """What an item is sampled with, and one in how many of them runs: the cases of its test, or all
    of the `family` that its mark names. A class's mark is about the tests that it inherits; those
    that it defines itself all run. What `transport` leaves out is in no family."""
    if _needs_no_transport(item):
        return None
    for node, mark in item.iter_markers_with_node("sampled"):
        if isinstance(node, pytest.Class) and item.originalname in vars(node.obj):  # type: ignore[attr-defined]
            continue
        name = mark.kwargs.get("family", node.nodeid.partition("[")[0])
        each = mark.kwargs.get("each", ())
        values = [str(attrgetter(key)(SimpleNamespace(**item.callspec.params))) for key in each]  # type: ignore[attr-defined]
        return (name, *values), int(mark.args[0])
    return None


@pytest.fixture(scope="session")
def one_of_each(request: pytest.FixtureRequest) -> OneOfEach:
    """Samples what is not a parameter: one name of each kind, as the given function decides; all
    with `--full`."""
    option = request.config.option

    def chosen(names: Iterable[str], kind: Callable[[str], str]) -> list[str]:
        ranked = sorted(names, key=lambda name: _rank(option.sample_seed, name))
        return sorted(ranked if option.full else {kind(name): name for name in ranked}.values())

    return chosen


def _rank(seed: str, name: str) -> str:
    return hashlib.sha256(f"{seed} {name}".encode()).hexdigest()

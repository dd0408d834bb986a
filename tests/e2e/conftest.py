"""Fixtures of the end-to-end tests: real boxes, each with a name and ports of its own, removed at
the end. A skip is an error here, unless the machine lacks what the test needs."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from cli_box import CliBox, PreviousBuilds
from skipping import no_other_skip
from told import PAGE, Told

from agentbox.host.engines.state import BoxState

NAME = "agentbox-e2e"
PORT = 29090


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turns a skip into a failure, unless the machine lacks what the test needs."""
    report = yield
    no_other_skip(report, "the end-to-end stories")
    return report


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-page", action="store_true", help=f"write what the stories saw to {PAGE.name}"
    )


@pytest.fixture(scope="session")
def told(request: pytest.FixtureRequest) -> Iterator[Told]:
    """Compares the page of errors with the output that the tests see."""
    made = Told(write=request.config.getoption("--write-page"))
    yield made
    if made.write:
        PAGE.write_text(made.page())


@pytest.fixture(scope="session")
def previous() -> PreviousBuilds:
    """Nothing yet."""
    return PreviousBuilds()


@pytest.fixture(scope="module")
def cli_box(tmp_path_factory: pytest.TempPathFactory, previous: PreviousBuilds) -> Iterator[CliBox]:
    """The box of a module: started by its first test, stopped after its last."""
    yield from _box(CliBox(tmp_path_factory.mktemp("cli_box"), NAME, PORT), previous)


@pytest.fixture
def other(tmp_path: Path, previous: PreviousBuilds) -> Iterator[CliBox]:
    """A second box, which does not run yet."""
    yield from _box(CliBox(tmp_path / "other", f"{NAME}-other", PORT + 20), previous)


def _box(made: CliBox, previous: PreviousBuilds) -> Iterator[CliBox]:
    port = made.port
    if made.name not in previous.free:
        made.down()  # the remains of an earlier run that was killed
    previous.free.discard(made.name)
    made.take_image(previous)
    yield made
    if (built := BoxState(made.state).build_stamp()) is not None and made.port == port:
        previous.images[port] = built
    made.down()
    previous.free.add(made.name)

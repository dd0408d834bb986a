"""Fixtures of the end-to-end tests: real boxes, each with a name and ports of its own, removed at
the end. A skip is an error here, unless the machine lacks what the test needs."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from desk import Desk, Earlier
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
def earlier() -> Earlier:
    """Nothing yet."""
    return Earlier()


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, earlier: Earlier) -> Iterator[Desk]:
    """The box of a module: started by its first test, stopped after its last."""
    yield from _box(Desk(tmp_path_factory.mktemp("desk"), NAME, PORT), earlier)


@pytest.fixture
def other(tmp_path: Path, earlier: Earlier) -> Iterator[Desk]:
    """A second box, which does not run yet."""
    yield from _box(Desk(tmp_path / "other", f"{NAME}-other", PORT + 20), earlier)


def _box(made: Desk, earlier: Earlier) -> Iterator[Desk]:
    port = made.port
    if made.name not in earlier.free:
        made.down()  # the remains of an earlier run that was killed
    earlier.free.discard(made.name)
    made.take_image(earlier)
    yield made
    if (built := BoxState(made.state).build_stamp()) is not None and made.port == port:
        earlier.images[port] = built
    made.down()
    earlier.free.add(made.name)

"""Fixtures of the end-to-end tests: real boxes, each with a name and ports of its own, removed at
the end. A skip is an error here, unless the machine lacks what the test needs."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from desk import Desk, Images
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
def images() -> Images:
    """The image of each port, built by the first box that has it."""
    return {}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, images: Images) -> Iterator[Desk]:
    """The box of a module: started by its first test, stopped after its last."""
    yield from _box(Desk(tmp_path_factory.mktemp("desk"), NAME, PORT), images)


@pytest.fixture
def other(tmp_path: Path, images: Images) -> Iterator[Desk]:
    """A second box, which does not run yet."""
    yield from _box(Desk(tmp_path / "other", f"{NAME}-other", PORT + 20), images)


def _box(made: Desk, images: Images) -> Iterator[Desk]:
    """Begins with the image that an earlier box of that port built, as the next `up` of a box does:
    with other inputs `up` builds all the same. Leaves its own for the next."""
    made.down()  # the remains of an earlier run that was killed
    port = made.port
    if port in images:
        made.keep_image(images[port])
    yield made
    if (built := BoxState(made.state).build_stamp()) is not None and made.port == port:
        images[port] = built
    made.down()

"""Fixtures of the runtime contract. A skip is an error here: what does not run has not been shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from harness.box import Box, Options
from harness.container import DockerBox
from harness.images import Images, build_images
from harness.process import ProcessBox

MakeBox = Callable[..., Box]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Turns a skip into a failure."""
    outcome = yield
    report = outcome.get_result()
    if report.skipped:
        report.outcome = "failed"
        report.longrepr = f"skipped in the runtime contract: {report.longrepr}"


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Images:
    """Both images of the contract's manifest, built by the product."""
    return build_images(tmp_path_factory.mktemp("images"))


@pytest.fixture
def docker_box(images: Images, tmp_path: Path) -> Iterator[Callable[..., DockerBox]]:
    """Makes docker boxes; each is removed, with its volumes, at the end."""
    made: list[DockerBox] = []

    def make(**options: object) -> DockerBox:
        made.append(DockerBox(tmp_path / str(len(made)), images, Options(**options)))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for box in made:
        box.remove()


@pytest.fixture
def process_box(tmp_path: Path) -> Iterator[Callable[..., ProcessBox]]:
    """Makes process-engine boxes; each is killed and removed at the end."""
    made: list[ProcessBox] = []

    def make(**options: object) -> ProcessBox:
        made.append(ProcessBox(tmp_path / str(len(made)), Options(**options)))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for box in made:
        box.remove()


@pytest.fixture(params=["docker", "process"])
def make_box(request: pytest.FixtureRequest) -> MakeBox:
    """Makes boxes under each engine in turn (columns D and H)."""
    made: MakeBox = request.getfixturevalue(f"{request.param}_box")
    return made

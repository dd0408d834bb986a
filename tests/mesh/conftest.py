"""Real boxes on loopback for the tests of the mesh."""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from meshes import SCALE, Start
from support.api_box import ApiBox
from support.mesh import host_plan, mesh_box, write_enrolment

from agentbox.plan.model import Plan


@pytest.fixture
def directory() -> Iterator[Path]:
    """Short, as sockets need it."""
    made = Path(tempfile.mkdtemp(prefix="abm-", dir="/var/tmp"))
    yield made
    shutil.rmtree(made)


@pytest.fixture
def start(directory: Path) -> Iterator[Start]:
    """Starts boxes of this test's own: `start(plan)`."""
    boxes: list[ApiBox] = []

    def started(
        plan: Plan, *, scale: float = SCALE, wait: bool = True, secrets: Mapping[str, str] | None = None
    ) -> ApiBox:  # fmt: skip
        prefix = directory / str(len(boxes))
        box = mesh_box(prefix, plan, scale=scale)
        write_enrolment(prefix, **(secrets or {}))
        boxes.append(box)
        box.start(wait=wait)
        return box

    yield started
    for box in reversed(boxes):
        box.__exit__(None, None, None)


@pytest.fixture(scope="module")
def host() -> Iterator[ApiBox]:
    """One host for the tests of a module, at the true speed."""
    prefix = Path(tempfile.mkdtemp(prefix="abm-", dir="/var/tmp"))
    with mesh_box(prefix, host_plan()) as running:
        yield running
    shutil.rmtree(prefix)

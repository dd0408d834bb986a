"""Fixtures of the runtime contract. A skip is an error here, unless the machine lacks what the test
needs: what does not run has not been shown. Engines: docker (column D) and process (column H). The
podman column (P) of the table is not supported yet."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import cast

import pytest
from harness.box import Box
from harness.container import DockerBox
from harness.images import Images, built_images
from harness.pool import Pool
from harness.process import ProcessBox
from skipping import no_other_skip

ENGINES = ("docker", "process")
EITHER = [
    "docker",
    pytest.param("process", marks=pytest.mark.sampled(4, family="process engine")),
]
"""Each test runs with docker, and without `--full` one in four with the process engine too."""
LOCK = Path(tempfile.gettempdir()) / "agentbox-runtime-contract.lock"
READ_ONLY = ("running_docker", "running_process", "running", "loaded")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turns a skip into a failure, unless the machine lacks what the test needs."""
    report = yield
    no_other_skip(report, "the runtime contract")
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share a running box go first, one engine after the other, so that each is started once."""
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    names = set(getattr(item, "fixturenames", ()))
    if not names & set(READ_ONLY):
        return 2
    params = item.callspec.params if hasattr(item, "callspec") else {}
    engines = {params.get("running"), params.get("loaded")}
    return int("running_process" in names or "process" in engines)


@pytest.fixture(scope="session")
def alone() -> Iterator[None]:
    """The contract's boxes have one name and one pair of ports on a machine: two runs at once would end each other's."""
    with LOCK.open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pytest.exit(
                f"another run of the runtime contract is under way: it holds {LOCK}", returncode=7
            )
        yield


@pytest.fixture(scope="session")
def images(alone: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Images]:
    """Both images of the contract's manifest, built by the product."""
    with built_images(tmp_path_factory.mktemp("images")) as images:
        yield images


@pytest.fixture(scope="session")
def pool(images: Images, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    """All boxes of the session."""
    pool = Pool(tmp_path_factory.mktemp("boxes"), images)
    yield pool
    pool.close()


@pytest.fixture
def releases() -> Iterator[Path]:
    """A folder for other releases: every user can reach it, unlike the folders of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="agentbox-rc-releases-", dir="/var/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def docker_box(pool: Pool) -> Iterator[Callable[..., DockerBox]]:
    """Creates docker boxes; a second one replaces the first."""
    yield lambda **options: cast(DockerBox, pool.fresh("docker", **options))
    pool.clear()


@pytest.fixture
def process_box(pool: Pool) -> Iterator[Callable[..., ProcessBox]]:
    """Creates process-engine boxes; a second one replaces the first."""
    yield lambda **options: cast(ProcessBox, pool.fresh("process", **options))
    pool.clear()


@pytest.fixture(params=EITHER)
def make_box(request: pytest.FixtureRequest, pool: Pool) -> Iterator[Callable[..., Box]]:
    """Creates boxes under each engine in turn (columns D and H)."""
    yield lambda **options: pool.fresh(request.param, **options)
    pool.clear()


@pytest.fixture(scope="module", params=EITHER)
def make_shared_box(request: pytest.FixtureRequest, pool: Pool) -> Iterator[Callable[..., Box]]:
    """The same, for a box that the tests of a module share, each of which leaves it ready."""
    yield lambda **options: pool.fresh(request.param, **options)
    pool.clear()


@pytest.fixture
def running_docker(pool: Pool) -> DockerBox:
    """A ready docker box that tests share; they do not change it."""
    return cast(DockerBox, pool.shared("docker"))


@pytest.fixture
def running_process(pool: Pool) -> ProcessBox:
    """A ready process-engine box that tests share; they do not change it."""
    return cast(ProcessBox, pool.shared("process"))


@pytest.fixture(params=ENGINES)
def running(request: pytest.FixtureRequest, pool: Pool) -> Box:
    """A ready box of each engine in turn that tests share; they do not change it."""
    return pool.shared(request.param)


@pytest.fixture(params=EITHER)
def loaded(request: pytest.FixtureRequest, pool: Pool) -> Box:
    """The same, for tests that keep it busy for long."""
    return pool.shared(request.param)

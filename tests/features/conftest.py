"""Which features a run tries: a small one that stands for all, the named ones, or every one (then
the rows are stored)."""

from __future__ import annotations

import fcntl
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_box import CliBox
from manifests import gated
from record import RESULTS, stands
from room import free_bytes

from agentbox.core.paths import CHECKOUT
from agentbox.host.packages.lock_inputs import host_system
from agentbox.manifest.features.loader import load_features

REPRESENTATIVE = ("opencode",)  # small, and from the source that core has nothing of
NAME = "agentbox-feature"
PORT = 29590
LOCK = Path(tempfile.gettempdir()) / "agentbox-features.lock"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--feature", action="append", default=[], help="A feature to try; repeatable.")
    parser.addoption("--every-feature", action="store_true", help="All of them, and keep the rows.")


def pytest_report_header(config: pytest.Config) -> str:
    """What a reader must know before hours of it."""
    stands = f"; rows of {RESULTS.relative_to(CHECKOUT)} that are of the same files stand"
    return f"features: {free_bytes() / 1e9:.0f} GB of disk are free" + stands * config.getoption(
        "--every-feature"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "name" in metafunc.fixturenames:
        config = metafunc.config
        known = gated(load_features())
        chosen = tuple(config.getoption("--feature")) or (
            known if config.getoption("--every-feature") else REPRESENTATIVE
        )
        if unknown := sorted(set(chosen) - set(known)):
            raise pytest.UsageError(f"no such feature: {unknown[0]}; there are {', '.join(known)}")
        metafunc.parametrize("name", chosen)


@pytest.fixture
def keeps(request: pytest.FixtureRequest) -> bool:
    """Whether rows go to bench/results."""
    return bool(
        request.config.getoption("--every-feature") or request.config.getoption("--feature")
    )


@pytest.fixture
def systems(request: pytest.FixtureRequest, keeps: bool) -> str:
    """A line of the manifest: what is locked is for this machine only, unless rows are stored or
    every case runs."""
    return (
        ""
        if keeps or request.config.getoption("--full")
        else f'image.systems = ["{host_system()}"]\n'
    )


@pytest.fixture
def goes_on(request: pytest.FixtureRequest) -> bool:
    """Whether a row that an earlier run stored for the same files is still valid."""
    return stands(
        request.config.getoption("--every-feature"), request.config.getoption("--feature")
    )


@pytest.fixture(scope="session")
def alone() -> Iterator[None]:
    """The trials' box has one name and one pair of ports on a machine: two runs at once would end each other's."""
    with LOCK.open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pytest.exit(f"another run of the features is under way: it holds {LOCK}", returncode=7)
        yield


@pytest.fixture
def cli_box(alone: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CliBox]:
    """A box of its own, removed afterwards."""
    made = CliBox(tmp_path_factory.mktemp("feature"), NAME, PORT)
    made.down()  # the remains of an earlier run that was killed
    yield made
    made.down()

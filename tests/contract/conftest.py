"""What every contract suite needs. A skip in a suite is a failure, unless the machine lacks what the test needs."""

from functools import cache

import pytest
import pytest_asyncio
from agentbox_testkit.clock import ManualClock
from postgres_server import running
from skipping import no_other_skip
from solid_server import running as running_solid
from solid_store import SolidStore

from agentbox.adapters.memory import embedder

pytest.register_assert_rewrite("agentbox_testkit.contracts")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def principals() -> tuple[str, ...]:
    return ("urn:agentbox:box:one", "urn:agentbox:box:two")


@pytest.fixture(scope="session")
def full(request):
    """Whether the long form of a test runs."""
    return request.config.option.full


@pytest.fixture(scope="session", autouse=True)
def _embedder_read_once():
    """Each instance would read and hash its 16 MiB again."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(embedder, "_load", cache(embedder._load))
        yield


@pytest.fixture(scope="session")
def postgres():
    """A server for all; a test that stops it starts it again."""
    with running() as server:
        yield server


@pytest.fixture(scope="session")
def solid():
    """A Community Solid Server for all; one that a test killed is started again."""
    with running_solid() as server:
        yield server


@pytest_asyncio.fixture
async def solid_store(solid, tmp_path, clock):
    """A root container of its own, behind a relay."""
    solid.start()
    made = SolidStore(solid, tmp_path, clock=clock)
    async with made.line:
        yield made
        await made.close_all()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    no_other_skip(report, "a contract suite: a clause holds or it does not")
    return report

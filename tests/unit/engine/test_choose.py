"""Choice of the engine, and the errors for one that cannot be used."""

import pytest

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.engines.docker.docker import DockerEngine
from agentbox.host.engines.engine_choice import select_engine
from agentbox.host.engines.process.process import ProcessEngine
from agentbox.host.engines.state import BoxRecord

LAST = BoxRecord(engine="process", name="box", api_url="")


def test_what_is_asked_for_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The requested engine, then AGENTBOX_ENGINE, then the engine last used, then docker."""
    monkeypatch.setenv("AGENTBOX_ENGINE", "process")
    assert isinstance(select_engine("docker", LAST).engine, DockerEngine)
    assert isinstance(select_engine("auto", None).engine, ProcessEngine)
    monkeypatch.delenv("AGENTBOX_ENGINE")
    assert isinstance(select_engine("auto", LAST).engine, ProcessEngine)
    assert isinstance(select_engine("auto", None).engine, DockerEngine)


@pytest.mark.parametrize(
    ("name", "words"), [("podman", "with podman: not supported"), ("lxc", "unknown engine")]
)
def test_what_is_not_run_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, name: str, words: str
) -> None:
    """An unsupported engine, requested or in AGENTBOX_ENGINE: exit 2, one sentence, and an
    alternative.
    """
    for asked, variable in ((name, ""), ("auto", name)):
        monkeypatch.setenv("AGENTBOX_ENGINE", variable)
        with pytest.raises(AgentboxError, match=words) as refused:
            select_engine(asked, None)
        assert refused.value.exit_code is ExitCode.USAGE
        assert "docker" in refused.value.hint

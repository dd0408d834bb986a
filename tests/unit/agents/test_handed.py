"""Secrets as files: written into a directory that agent-host created, removed beneath the agent's
own directory."""

from pathlib import Path

from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.runs import home, injected_env
from agentbox.contracts.orchestrator import AgentSpec, Limits
from agentbox.core.paths import Paths
from agentbox.policy.rights.authorization import Right
from agentbox.policy.rights.grant_set import Grant, GrantSet


def agent_with_secret(paths: Paths) -> tuple[AgentRecord, Path]:
    """An agent with the secret KEY, and its temp directory."""
    right = Right(grant_id="g", scope="env", mode="allow", operations=("read",), patterns=("KEY",))
    entry = AgentRecord(
        agent_id="a", spec=AgentSpec(name="a", argv=("a",)), limits=Limits(), principal="", request_id="",
        grant_set=GrantSet(secrets=(Grant(right=right),)),
    )  # fmt: skip
    paths.moved_secrets.mkdir(parents=True)
    (paths.moved_secrets / "KEY").write_text("hush")
    return entry, home.create(home.agent_dir(paths, "a"))[1]


def test_a_link_in_its_place_leads_nowhere(tmp_path: Path) -> None:
    """Neither a start nor a revocation touches what an agent's links point at."""
    paths = Paths(tmp_path)
    entry, temp = agent_with_secret(paths)
    (temp / "secrets").symlink_to(paths.moved_secrets)
    injected_env.remove_secret(paths, "a", "KEY")
    assert (paths.moved_secrets / "KEY").read_text() == "hush"
    injected_env.write_secrets(entry, paths, temp, 0)
    assert not (temp / "secrets").is_symlink()
    assert (temp / "secrets/KEY").stat().st_mode & 0o777 == 0o400
    assert (paths.moved_secrets / "KEY").stat().st_ino != (temp / "secrets/KEY").stat().st_ino
    injected_env.remove_secret(paths, "a", "KEY")
    assert list((temp / "secrets").iterdir()) == []


def test_an_earlier_life_leaves_nothing_there(tmp_path: Path) -> None:
    """A directory full of links and files is created again, and a secret that has expired is not in
    it."""
    paths = Paths(tmp_path)
    entry, temp = agent_with_secret(paths)
    (temp / "secrets").mkdir()
    (temp / "secrets/KEY").symlink_to(tmp_path / "elsewhere")
    (temp / "secrets/old").write_text("old")
    injected_env.write_secrets(entry, paths, temp, 0)
    assert not (tmp_path / "elsewhere").exists()
    assert sorted(one.name for one in (temp / "secrets").iterdir()) == ["KEY"]

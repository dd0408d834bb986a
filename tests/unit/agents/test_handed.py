"""Secrets as files: written into a folder of agent-host's own making, removed beneath the agent's own folder."""

from pathlib import Path

from agentbox.adapters.orchestrator.contract import AgentSpec, Limits
from agentbox.agents import handed, home
from agentbox.agents.entry import Entry
from agentbox.grants.holding import Grant, Holding
from agentbox.grants.standing import Right
from agentbox.settings import Paths


def given(paths: Paths) -> tuple[Entry, Path]:
    """An agent with the secret KEY, and its temp folder."""
    right = Right(grant_id="g", scope="env", mode="allow", operations=("read",), patterns=("KEY",))
    entry = Entry(
        agent_id="a", spec=AgentSpec(name="a", argv=("a",)), limits=Limits(), principal="", request_id="",
        holding=Holding(secrets=(Grant(right=right),)),
    )  # fmt: skip
    paths.moved_secrets.mkdir(parents=True)
    (paths.moved_secrets / "KEY").write_text("hush")
    return entry, home.make(home.of_agent(paths, "a"))[1]


def test_a_link_in_its_place_leads_nowhere(tmp_path: Path) -> None:
    """Neither a start nor a revocation touches what an agent's links point at."""
    paths = Paths(tmp_path)
    entry, temp = given(paths)
    (temp / "secrets").symlink_to(paths.moved_secrets)
    handed.take_back(paths, "a", "KEY")
    assert (paths.moved_secrets / "KEY").read_text() == "hush"
    handed.give_secrets(entry, paths, temp, 0)
    assert not (temp / "secrets").is_symlink()
    assert (temp / "secrets/KEY").stat().st_mode & 0o777 == 0o400
    assert (paths.moved_secrets / "KEY").stat().st_ino != (temp / "secrets/KEY").stat().st_ino
    handed.take_back(paths, "a", "KEY")
    assert list((temp / "secrets").iterdir()) == []


def test_an_earlier_life_leaves_nothing_there(tmp_path: Path) -> None:
    """A folder full of links and files is made anew, and a secret that is over is not in it."""
    paths = Paths(tmp_path)
    entry, temp = given(paths)
    (temp / "secrets").mkdir()
    (temp / "secrets/KEY").symlink_to(tmp_path / "elsewhere")
    (temp / "secrets/old").write_text("old")
    handed.give_secrets(entry, paths, temp, 0)
    assert not (tmp_path / "elsewhere").exists()
    assert sorted(one.name for one in (temp / "secrets").iterdir()) == ["KEY"]

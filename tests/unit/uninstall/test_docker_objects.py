"""What a docker daemon has is removed only if a box of this user made it; without an answer of the daemon
everything stays."""

import shutil
from pathlib import Path

import pytest
from skipping import machine_lacks

from agentbox.core.errors import AgentboxError
from agentbox.host.engines.docker.ownership import Owner, Row, split
from agentbox.host.engines.state import BoxState
from agentbox.host.uninstall import host_traces, package_removals
from agentbox.host.uninstall.docker_answer import UNKNOWN, ask_docker
from agentbox.host.uninstall.inventory import Inventory

HERE, ELSEWHERE = Path("/state/web/compose"), "/srv/web"
OURS = [
    Row("container", "web", "web", str(HERE)),
    Row("volume", "web-state", "web", "state"),
    Row("volume", "web-branches-g12", "web", "branches"),
    Row("volume", "web-backups", "web", "backups"),
    Row("volume", "web-snapshots", "web", "snapshots"),  # noted: of backup.folder
]
NETWORK = Row("network", "web_agentbox", "web", "agentbox")
THEIRS = [
    Row("network", "web_default", "web", "default"),
    Row("volume", "web_data", "web", "data"),
    Row("volume", "web-data", "web", "data"),
    Row("volume", "web-state-old", "web", "state"),
    Row("volume", "web-state-g1x", "web", "state"),
    Row("volume", "web-workspace", "web", "data"),
    Row("volume", "web-branches", "other", "branches"),
    Row("volume", "web-state-g2", "", ""),
]


def test_a_project_of_the_same_name_keeps_what_it_has() -> None:
    """The directory of its compose file tells containers apart, the names volumes and networks."""
    owner = Owner("web", HERE, ["web-snapshots"])
    assert split([*OURS, NETWORK, *THEIRS], [owner]) == ([*OURS, NETWORK], THEIRS)


def test_a_network_stays_while_a_container_of_another_project_has_its_name() -> None:
    """Also a container without a directory, as podman-compose makes it, is not ours."""
    owner = Owner("web", HERE, ["web-snapshots"])
    for directory in (ELSEWHERE, ""):
        theirs = Row("container", "web-app-1", "web", directory)
        assert split([*OURS, NETWORK, theirs], [owner]) == (OURS, [NETWORK, theirs])


def test_a_daemon_that_does_not_answer_may_have_something_of_anybody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line of a box is enough to ask. A noted volume makes it an error, but not in a dry run."""
    if shutil.which("docker") is None:
        machine_lacks("the docker client")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    inventory = Inventory(tmp_path / "state")
    assert ask_docker(inventory, [], [], start=True).users(purge=True) == ()
    inventory.add("box", "web")
    states = [BoxState(inventory.directory / "web")]
    assert ask_docker(inventory, states, [], start=True).users(purge=True) == (UNKNOWN,)
    inventory.add("volume", "web-state")
    with pytest.raises(AgentboxError, match="cannot list what docker has of agentbox"):
        ask_docker(inventory, states, [], start=True)
    assert ask_docker(inventory, states, [], start=False).users(purge=True) == (UNKNOWN,)


@pytest.mark.parametrize(("users", "program"), [(["volume db"], False), ([UNKNOWN], False), ([], True), ([], False)])  # fmt: skip
def test_data_stay_while_somebody_uses_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, users: list[str], program: bool
) -> None:
    """Also if docker.io is not here any more, and a dockerd of no package of ours is."""
    if shutil.which("dpkg-query") is None:
        machine_lacks("dpkg, which knows the package of a program")
    data, dockerd = tmp_path / "docker", tmp_path / "dockerd"
    data.mkdir()
    if program:
        dockerd.touch()
    monkeypatch.setattr(host_traces, "_PACKAGE_DATA", {"docker.io": (str(data),), "nix-bin": ()})
    monkeypatch.setattr(package_removals, "_PROGRAMS", {"docker.io": (str(dockerd),), "nix-bin": ()})  # fmt: skip
    inventory = Inventory(tmp_path / "state")
    inventory.add("package-data", data)
    removals, kept, _ = package_removals.package_removals(
        inventory, [], wanted=True, docker_users=users, nix_users=[]
    )
    stays = bool(users) or program
    assert [step.name for step in removals] == ([] if stays else [str(data)])
    assert [row.name for row in kept] == ([str(data)] if stays else [])

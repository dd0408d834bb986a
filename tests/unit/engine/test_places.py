"""A record that names resources of others causes no stop, overwrite or removal."""

import json
import os
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from agentbox.core.errors import AgentboxError
from agentbox.host.cli.main import cli
from agentbox.host.engines.docker.daemon import start_ticks
from agentbox.host.engines.locations import check_record, process_root
from agentbox.host.engines.process.process import ProcessEngine
from agentbox.host.engines.state import BoxRecord, BoxState

KEPT = ("run", "tmp", "opt", "etc")


@pytest.fixture
def state(tmp_path: Path) -> BoxState:
    found = BoxState(tmp_path / "state/mine")
    found.make()
    return found


def of_process(state: BoxState) -> BoxRecord:
    return BoxRecord(engine="process", name="mine", api_url="", root=str(state.directory / "root"))


def of_docker(state: BoxState) -> BoxRecord:
    return BoxRecord(engine="docker", name="mine", api_url="", folder=str(state.compose_dir))


def test_what_the_name_gives_is_taken(state: BoxState, tmp_path: Path) -> None:
    """Whichever user started the box, and through a symbolic link above it."""
    check_record(of_docker(state), "mine", state)
    check_record(of_process(state), "mine", state)
    check_record(replace(of_process(state), root="/var/lib/agentbox-process/mine"), "mine", state)
    check_record(replace(of_process(state), root=str(process_root("mine", state))), "mine", state)
    (tmp_path / "link").symlink_to(state.directory)
    check_record(replace(of_docker(state), folder=str(tmp_path / "link/compose")), "mine", state)


@pytest.mark.parametrize(
    "root",
    ["", ".", "/", "/etc", "root", "/var/lib/agentbox-process", "/var/lib/agentbox-process/yours"],
)
def test_another_root_is_refused(state: BoxState, root: str) -> None:
    """No root, a relative one, the host's own, and that of another box."""
    with pytest.raises(AgentboxError, match="which does not belong to the box mine"):
        check_record(replace(of_process(state), root=root), "mine", state)


def test_another_name_or_folder_is_refused(state: BoxState) -> None:
    """Those of another box, as in a copied state directory."""
    with pytest.raises(AgentboxError, match="it points to the box 'yours'"):
        check_record(replace(of_docker(state), name="yours"), "mine", state)
    with pytest.raises(AgentboxError, match="which does not belong to the box mine"):
        check_record(
            replace(of_docker(state), folder=str(state.directory.parent / "yours/compose")),
            "mine",
            state,
        )


@pytest.mark.parametrize(
    "words", [["down"], ["down", "--volumes", "--yes"], ["restart"], ["status"]]
)
def test_no_command_touches_what_a_record_names(
    state: BoxState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    """The operator's directories stay, and the message names the remedy."""
    monkeypatch.setenv("AGENTBOX_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "agentbox.toml").write_text('[meta]\nschema_version = 1\nname = "mine"\n')
    mine = tmp_path / "work"
    for name in KEPT:
        (mine / name).mkdir(parents=True)
    state.record_file.write_text(json.dumps({**asdict(of_process(state)), "root": str(mine)}))
    done = CliRunner().invoke(cli, ["--manifest", str(tmp_path / "agentbox.toml"), *words])
    assert isinstance(done.exception, AgentboxError)
    assert (
        done.exception.message
        == f"cannot use {state.record_file}: it points to the directory {str(mine)!r}, which does not belong to the box mine"
    )
    assert sorted(path.name for path in mine.iterdir()) == sorted(KEPT)


def test_a_process_of_another_program_is_not_signalled(state: BoxState) -> None:
    """It must run below the root of the box, whatever pid the record has: here the test's own."""
    pid = os.getpid()
    ProcessEngine().stop(replace(of_process(state), pid=pid, start_ticks=start_ticks(pid)), 1)

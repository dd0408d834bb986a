"""Without --purge nothing goes that only looks like agentbox's: caches with other files, damaged lines of
the inventory, directories whose access list nobody changed."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from skipping import machine_lacks

from agentbox.core.errors import AgentboxError
from agentbox.core.paths import HostPaths
from agentbox.host.engines.locations import SYSTEM_ROOT
from agentbox.host.engines.state import BoxState
from agentbox.host.engines.workspace_permissions import WorkspaceAccess, prepare_project
from agentbox.host.uninstall import boxes
from agentbox.host.uninstall.access_lists import access_removals
from agentbox.host.uninstall.boxes import process_roots
from agentbox.host.uninstall.inventory import Inventory
from agentbox.host.uninstall.plan import Planner
from agentbox.host.uninstall.removal import Kept, Removal, UninstallPlan

DIGEST = "0" * 64


def planned(
    directory: Path, cache: Path, *, purge: bool = False, checkout: Path | None = None
) -> UninstallPlan:
    """The plan of an uninstallation with that state root and cache."""
    paths = HostPaths(directory, cache)
    made = checkout or directory / "checkout"
    return Planner(Inventory(directory), purge, packages=False, checkout=made, paths=paths).plan()


def perform(plan: UninstallPlan, directory: Path) -> None:
    """Those steps that are below the directory."""
    for step in plan.removals:
        if Path(step.name).is_relative_to(directory):
            step.remove()


def test_a_directory_that_was_there_keeps_what_others_put_there(tmp_path: Path) -> None:
    """AGENTBOX_CACHE_DIR may name one; also beside our files, in directories of the same names."""
    state, cache = tmp_path / "state", tmp_path / "cache"
    ours = {f"files/{DIGEST}", f"files/{DIGEST}.part", "roots/0123456789ab/x", "apt/trixie-amd64-0123456789ab/y"}  # fmt: skip
    theirs = {"thesis.tex", "files/photo.jpg", "roots/tree", "apt/notes"}
    for name in ours | theirs:
        (cache / name).parent.mkdir(parents=True, exist_ok=True)
        (cache / name).write_text("x")
    Inventory(state).add_directory("cache", cache)
    plan = planned(state, cache)
    perform(plan, tmp_path)
    assert {str(p.relative_to(cache)) for p in cache.rglob("*") if p.is_file()} == theirs
    assert {row.name for row in plan.kept if row.foreign} == {str(cache / name) for name in theirs}
    assert str(cache) not in plan.last.empty


def test_a_damaged_line_names_no_root(tmp_path: Path) -> None:
    """Neither the directory above, nor one with another name, nor one outside."""
    inventory = Inventory(tmp_path / "state")
    names = ("..", ".", "", "../../home", "Upper", "a/..")
    inventory.add("process-root", *(f"{SYSTEM_ROOT}/{name}" for name in names))
    inventory.add("process-root", "/", "/var/lib", f"{tmp_path}/state/box/root/..")
    state = BoxState(tmp_path / "state/box")
    state.directory.mkdir()
    assert process_roots(inventory, [state]) == []


def test_a_root_that_is_a_link_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It leads to files of others."""
    monkeypatch.setattr(boxes, "SYSTEM_ROOT", tmp_path / "system")
    (tmp_path / "system").mkdir()
    (tmp_path / "system/link").symlink_to(tmp_path)
    (tmp_path / "system/box").mkdir()
    inventory = Inventory(tmp_path)
    inventory.add("process-root", tmp_path / "system/link", tmp_path / "system/box")
    assert process_roots(inventory, []) == [tmp_path / "system/box"]


def test_an_access_list_is_removed_only_where_one_is_and_the_path_is_ours(tmp_path: Path) -> None:
    """A line without its act, a damaged one, and one whose path now leads elsewhere."""
    if os.geteuid() != 0 or shutil.which("setfacl") is None:
        machine_lacks("root and setfacl")
    for name in ("granted", "plain"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to("granted")
    subprocess.run(["setfacl", "-m", "d:u:1000:rwX", str(tmp_path / "granted")], check=True)
    damaged = ["/", f"{tmp_path}/plain/../granted", "granted"]
    steps = list(access_removals([*damaged, *map(str, tmp_path.iterdir()), f"{tmp_path}/gone"]))
    assert [row.name for row in steps if isinstance(row, Removal)] == [str(tmp_path / "granted")]
    kept = {row.name for row in steps if isinstance(row, Kept)}
    assert kept == {*damaged, str(tmp_path / "link")}


def test_an_access_list_is_noted_only_with_consent(tmp_path: Path) -> None:
    """Nobody is asked without a terminal, which is a refusal."""
    if os.geteuid() != 0:
        machine_lacks("root, whose directory the box's user cannot write")
    noted: list[str] = []
    with pytest.raises(AgentboxError, match="cannot use"):
        prepare_project(tmp_path, WorkspaceAccess(), yes=False, note=lambda: noted.append("x"))
    assert noted == []

"""The inventory: noted once, readable whatever a killed command left, and never of what was there."""

import subprocess
from pathlib import Path

from agentbox.host.uninstall.inventory import Inventory, Item
from agentbox.host.uninstall.last_step import last_script
from agentbox.host.uninstall.removal import LastStep


def test_a_thing_is_noted_once_with_the_directories_above_it(tmp_path: Path) -> None:
    """Only those that did not exist."""
    inventory = Inventory(tmp_path / "local/state/agentbox")
    inventory.add("box", "one", "two")
    inventory.add("box", "one")
    assert inventory.items() == [
        Item("parent", str(tmp_path / "local")),
        Item("parent", str(tmp_path / "local/state")),
        Item("box", "one"),
        Item("box", "two"),
    ]


def test_what_exists_is_not_noted(tmp_path: Path) -> None:
    """Also a link that leads nowhere exists."""
    inventory = Inventory(tmp_path)
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("nowhere")
    inventory.add_absent("package-data", *(tmp_path / name for name in ("there", "link", "new")))
    assert inventory.names("package-data") == [str(tmp_path / "new")]


def test_what_is_taken_back_is_no_longer_noted(tmp_path: Path) -> None:
    """Until it is made again; what was never noted adds no line."""
    inventory = Inventory(tmp_path)
    inventory.add("volume", "one", "two")
    inventory.take_back("volume", "one", "three")
    assert inventory.names("volume") == ["two"]
    assert b"three" not in inventory.file.read_bytes()
    inventory.add("volume", "one")
    assert inventory.names("volume") == ["two", "one"]


def test_an_incomplete_line_is_ignored_and_the_next_one_is_read(tmp_path: Path) -> None:
    """A command may be killed while it writes."""
    inventory = Inventory(tmp_path)
    inventory.add("box", "one")
    with inventory.file.open("ab") as stream:
        stream.write(b'{"kind": "box", "na')
    inventory.add("box", "two")
    assert inventory.names("box") == ["one", "two"]


def test_an_unknown_kind_is_ignored(tmp_path: Path) -> None:
    """So is a line that is not an object."""
    inventory = Inventory(tmp_path)
    inventory.file.write_bytes(b'{"kind": "planet", "name": "Mars"}\n[1]\n')
    assert inventory.items() == []


def test_the_last_step_keeps_what_is_not_its_own(tmp_path: Path) -> None:
    """Other files of the checkout and of the state root, and a directory of another program, stay;
    names with a quote are names."""
    state, checkout = tmp_path / "it's state", tmp_path / "check'out"
    for path in (checkout / ".venv/bin", checkout / "agentbox/__pycache__", state, tmp_path / "b"):
        path.mkdir(parents=True)
    for path in (checkout / "agentbox.sh", checkout / "own", state / "manifests.json"):
        path.write_text("x")
    (state / "inventory.jsonl").write_text("x")
    (state / "other").write_text("x")
    script = last_script(
        LastStep(
            checkouts=(str(checkout), str(tmp_path / "b")),
            files=(str(state / "manifests.json"),),
            empty=(str(state), str(tmp_path / "b")),
        ),
        str(state),
        done="it's done",
        everything=True,
    )
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("it's done\n", "")
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")}
    assert left == {
        "check'out",
        "check'out/agentbox",
        "check'out/agentbox.sh",
        "check'out/own",
        "it's state",
        "it's state/other",
    }

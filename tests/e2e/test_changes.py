"""`up` on a running box does no more than the changed keys need; `down` and `restart` print what
they did."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

import pytest
from cli_box import CliBox

LIVE = "adapters.beads.lease_seconds = 77\n"
BOOT = 'api.max_body = "2MiB"\n'
RECREATE = "resources.pids = 3000\n"


@dataclass(frozen=True)
class Seen:
    """What distinguishes one container, one start and one boot from the next."""

    container: str
    started: str
    boot: str


def seen(box: CliBox) -> Seen:
    found = box.container()
    return Seen(found["Id"], found["State"]["StartedAt"], box.status()["boot_id"])


@pytest.fixture(scope="module")
def box(cli_box: CliBox) -> CliBox:
    cli_box.up()
    return cli_box


def changed(box: CliBox, extra: str) -> tuple[Seen, Seen, str]:
    """Before and after an `up` with that manifest, and the output of its stage `start`."""
    before = seen(box)
    box.write(extra)
    assert box.status()["drift"]
    ran = box.up()
    assert box.status()["drift"] == []
    return (
        before,
        seen(box),
        next(line for line in ran.err.splitlines() if line.split()[0] == "start"),
    )


def test_nothing_changed_does_nothing(box: CliBox) -> None:
    """The same container, start and boot; the stages print `unchanged`. A comment in the manifest
    changes no value."""
    before = seen(box)
    box.write("# nothing\n")
    ran = box.up()
    assert seen(box) == before
    said = {line.split()[0]: line.split()[1] for line in ran.err.splitlines()}
    assert {said[name] for name in ("lock", "fetch", "image", "start")} == {"unchanged"}


def test_a_live_key_is_applied_in_place(box: CliBox) -> None:
    """No boot: the box applies it."""
    before, after, said = changed(box, LIVE)
    assert after == before
    assert "applied in place (adapters.beads.lease_seconds)" in said


def test_a_boot_key_boots_again_in_place(box: CliBox) -> None:
    """The same container, another boot."""
    before, after, said = changed(box, LIVE + BOOT)
    assert after.container == before.container
    assert after.boot != before.boot
    assert "booted again (api.max_body)" in said


def test_a_recreate_key_makes_a_new_container(box: CliBox) -> None:
    """Another container with the new limit, of the same image."""
    image = box.container()["Image"]
    before, after, said = changed(box, LIVE + BOOT + RECREATE)
    assert after.container != before.container
    assert "recreated (resources.pids)" in said
    assert box.container()["HostConfig"]["PidsLimit"] == 3000
    assert box.container()["Image"] == image


def test_restart_takes_boot_keys_and_refuses_more(box: CliBox) -> None:
    """A boot key takes effect; a recreate key is refused by name, and nothing happens."""
    box.write(BOOT + RECREATE)
    before = seen(box)
    assert box("restart").code == 0
    assert seen(box).container == before.container
    assert seen(box).boot != before.boot
    box.write(BOOT)
    before = seen(box)
    refused = box("restart")
    sentence, hint = refused.error()
    assert refused.code == 1
    assert "resources.pids" in sentence
    assert "up" in hint
    assert seen(box) == before
    box.write(BOOT + RECREATE)


def test_a_secret_that_changed_boots_again(box: CliBox) -> None:
    """The new token works afterwards, without a new container."""
    before = seen(box)
    box.environment["AGENTBOX_API_TOKEN"] = "0123456789abcdef" * 4
    box.up()
    after = seen(box)
    assert after.container == before.container
    assert after.boot != before.boot
    assert (box.state / "token").read_text().strip() == box.environment["AGENTBOX_API_TOKEN"]
    assert box("run", "--", "echo", "fine").out == "fine\n"


def test_down_prints_the_shutdown_mark(box: CliBox) -> None:
    """Clean after an orderly stop, unclean after a KILL; then nothing runs, and status and run
    report it."""
    assert box("down").out.startswith("down (clean, drained in ")
    box.up()
    subprocess.run(["docker", "kill", box.name], check=True, capture_output=True)
    assert box("--json", "down").json["shutdown"] == "unclean"
    assert box("--json", "status").json == {"state": "off"}
    assert box("status").code == 8
    off = box("run", "--", "true")
    assert off.code == 125
    assert "it is not running" in off.error()[0]
    assert box("down").out == "down (not running)\n"

"""A failure on an operator's machine ends with one sentence, a hint and the right exit code, and
the next `up` works."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_box import CliBox, mounted
from told import Told

from agentbox.core.paths import CHECKOUT


@pytest.fixture(scope="module")
def started(cli_box: CliBox) -> CliBox:
    """A ready box."""
    cli_box.up()
    return cli_box


@pytest.fixture
def box(started: CliBox) -> Iterator[CliBox]:
    """After every test that has it, whatever it did, `up` with the valid manifest works and the box
    runs programs."""
    yield started
    started.environment.clear()
    started.write("")
    started.up()
    assert started("run", "--", "echo", "fine").out == "fine\n"


def test_a_port_of_another_program(other: CliBox, told: Told) -> None:
    """Exit 7, naming the key, the port and the program; the second `up`, when it is free, works."""
    for key, port in (("api.port", other.port), ("observability.metrics_port", other.port + 1)):
        with socket.socket() as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind(("127.0.0.1", port))
            taken.listen()
            ran = other("up")
        sentence, _ = ran.error()
        assert ran.code == 7
        assert f"{key} = {port}" in sentence
        assert "process " in sentence
        assert other.status() == {"state": "off"}
        told(f"A port is taken: {key}", other, ran)


@pytest.mark.sampled(3, family="refusals")
def test_a_port_of_another_box(box: CliBox, other: CliBox, told: Told) -> None:
    """Exit 7, naming that box; under the process engine too."""
    other.port = box.port
    other.write()
    for words in ([], ["--engine", "process"]):
        ran = other("up", *words)
        assert ran.code == 7
        assert f"the box {box.name}" in ran.error()[0]
    told("A port is taken by another box", other, ran)


@pytest.mark.sampled(3, family="refusals")
def test_a_foreign_container_of_the_same_name(other: CliBox, box: CliBox, told: Told) -> None:
    """Exit 7; `down` and `status` do not touch it."""
    argv = [
        "docker",
        "create",
        "--name",
        other.name,
        "--entrypoint",
        "/usr/bin/sleep",
        box.container()["Image"],
        "1",
    ]
    subprocess.run(argv, check=True, capture_output=True)
    try:
        ran = other("up")
        assert ran.code == 7
        assert "a container of that name belongs to something else" in ran.error()[0]
        told("The container's name belongs to something else", other, ran)
        assert other.status() == {"state": "off"}
        assert other("down").out == "down (not running)\n"
        assert other.container()["State"]["Status"] == "created"
    finally:
        subprocess.run(["docker", "rm", "--force", other.name], check=True, capture_output=True)


BROKEN_MANIFESTS = {
    "no TOML": b"not [ toml",
    "no UTF-8": bytes(range(128, 256)),
    "empty": b"",
    "unknown table": b'meta = { schema_version = 1, name = "agentbox-e2e" }\n[nosuch]\na = 1\n',
    "wrong type": b'meta = { schema_version = "1", name = 7 }\n',
    "a name that is a path": b'meta = { schema_version = 1, name = "../x" }\n',
    "huge": b"#" * (2 << 20),
}


def test_a_corrupt_manifest(box: CliBox, told: Told) -> None:
    """Exit 1 with the position of each finding; the running box is not touched."""
    before = box.container()["State"]["StartedAt"]
    for what, content in BROKEN_MANIFESTS.items():
        box.manifest.write_bytes(content)
        ran = box("up")
        assert ran.code == 1, what
        assert ran.error()[0].startswith(f"cannot use {box.manifest}: ")
        assert ran.err.startswith(f"{box.manifest}:")
        told(f"The manifest is corrupt: {what}", box, ran)
        assert box.container()["State"]["StartedAt"] == before, what


@pytest.mark.sampled(3, family="refusals")
def test_a_manifest_that_is_not_there(box: CliBox, told: Told) -> None:
    """Exit 2."""
    box.manifest.unlink()
    ran = box("up")
    assert ran.code == 2
    assert "no such file" in ran.error()[0]
    told("There is no manifest", box, ran)


@pytest.mark.sampled(3, family="changes from outside")
def test_a_damaged_record(box: CliBox) -> None:
    """The box is still found: `status` shows it and reports that `up` repairs the record."""
    for damage in ("", "{", "[]", '{"engine": 1}', "\x00\x01"):
        (box.state / "record.json").write_text(damage)
        found = box.status()
        assert found["state"] == "ready"
        assert "interrupted" in found["drift"][0]


@pytest.mark.sampled(3, family="refusals")
def test_limits_beyond_the_host(box: CliBox, told: Told) -> None:
    """More than the schema has: exit 1. More than this host has: exit 3. Both name the key; nothing is clamped."""
    box.write(f"resources.nofile = {1 << 30}\n")
    ran = box("up")
    assert ran.code == 1
    assert "resources.nofile" in ran.err
    told("A limit is beyond its bounds", box, ran)
    box.write(f"resources.cpus = {8 * (os.cpu_count() or 1)}\n")
    ran = box("up")
    assert ran.code == 3
    assert "resources.cpus" in ran.error()[0]
    told("A limit is beyond the host", box, ran)
    assert box.container()["HostConfig"]["NanoCpus"] == 2_000_000_000


@pytest.mark.sampled(3, family="refusals")
def test_a_read_only_project(box: CliBox, told: Told, tmp_path: Path) -> None:
    """Exit 3; a file or a missing directory: exit 2."""
    with mounted("tmpfs", "ro", tmp_path / "project"):
        ran = box("up", "--yes", "--project", str(tmp_path / "project"))
    assert ran.code == 3
    assert "read-only" in ran.error()[0]
    told("The workspace is on a read-only file system", box, ran)
    for wrong in ("/etc/passwd", str(tmp_path / "nowhere")):
        assert box("up", "--project", wrong).code == 2


@pytest.mark.sampled(3, family="changes from outside")
def test_a_project_that_the_box_may_not_write(box: CliBox, told: Told, tmp_path: Path) -> None:
    """Without consent exit 3 with the command; with it an access list, which `down --project`
    removes."""
    project = tmp_path / "project"
    project.mkdir(mode=0o755)
    ran = box("up", "--project", str(project))
    assert ran.code == 3
    assert "cannot write it" in ran.error()[0]
    assert ran.error()[1].startswith("Run: setfacl ")
    told("The workspace is not the box's to write, without --yes", box, ran)
    box.up("--project", str(project))
    assert box("run", "--direct", "--", "sh", "-c", "echo made > file").code == 0
    assert (project / "file").read_text() == "made\n"
    listed = ["getfacl", "--numeric", "--absolute-names", str(project)]
    assert "user:1000:" in subprocess.run(listed, capture_output=True, text=True, check=True).stdout
    assert box("down", "--project").code == 0
    assert (
        "user:1000:"
        not in subprocess.run(listed, capture_output=True, text=True, check=True).stdout
    )


@pytest.mark.sampled(3, family="changes from outside")
def test_a_box_that_somebody_removed(box: CliBox, told: Told) -> None:
    """`run`, `restart`, `shell` and `logs` report that it was removed; `down` succeeds."""
    subprocess.run(["docker", "rm", "--force", box.name], check=True, capture_output=True)
    assert {verb: box(*verb.split()).code for verb in ("run -- true", "restart", "shell -- true", "logs", "status")} == {
        "run -- true": 125, "restart": 8, "shell -- true": 125, "logs": 8, "status": 8,
    }  # fmt: skip
    told("Somebody removed the container: restart", box, box("restart"))
    told("Somebody removed the container: run", box, box("run", "--", "true"))
    assert box("down").code == 0


LOCK = CHECKOUT / "agentbox.lock"
ANOTHER_PACKAGE = "skills.media.ffmpeg = true\n"  # which the lock of the checkout does not have


@pytest.mark.sampled(3, family="refusals")
def test_a_stale_lock(box: CliBox, told: Told) -> None:
    """With --locked: exit 5, naming what is missing in the lock file."""
    box.write(ANOTHER_PACKAGE)
    ran = box("up", "--locked")
    assert ran.code == 5
    assert "it was made for other packages (feature ffmpeg was added)" in ran.error()[0]
    told("The lock is stale, with --locked", box, ran)


@pytest.mark.sampled(3, family="refusals")
def test_no_network(box: CliBox, told: Told) -> None:
    """A package is requested and no mirror answers: exit 4, and the lock file is unchanged. What is
    locked and fetched needs no network: the stages before the container's start pass."""
    before = LOCK.read_bytes()
    box.write(ANOTHER_PACKAGE)
    ran = box("up", "--yes", offline=True)
    assert ran.code == 4
    assert "no network" in ran.error()[0]
    assert LOCK.read_bytes() == before
    told("There is no network, and a package is not at hand", box, ran)
    box.write("")
    assert box("build", offline=True).code == 0


def test_no_engine(box: CliBox, told: Told) -> None:
    """A daemon that does not listen: exit 6 and its address, whatever the command; the box is
    unchanged afterwards."""
    box.environment["DOCKER_HOST"] = "unix:///nonexistent/docker.sock"
    for words, code in (
        (["up"], 6),
        (["status"], 6),
        (["down"], 6),
        (["shell", "--", "true"], 125),
    ):
        ran = box(*words)
        assert ran.code == code, ran.err
        assert "no docker daemon responds at unix:///nonexistent/docker.sock" in ran.error()[0]
        told(f"No engine answers: {words[0]}", box, ran)

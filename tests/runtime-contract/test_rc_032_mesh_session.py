"""RC-032: two boxes of one image, one a host and one its client by manifest alone:
docs/howto/federate.md, literally. Column D. The lifecycle of a session without containers is in
`tests/mesh`."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from harness.container import DockerBox, docker
from harness.images import Images
from harness.outcomes import API_PORT, MANIFEST, Options
from harness.tls import tls_front
from harness.waiting import wait_for

from agentbox.core.paths import CHECKOUT

PAGE = (CHECKOUT / "docs/howto/federate.md").read_text()
PUBLIC = "https://mesh.example:9443"
FRONT_PORT = 19443
SECRETS = {"AGENTBOX_MESH_TOKEN": "an-enrolment-token-of-a-test"}


def block(kind: str, number: int = 0) -> str:
    """A fenced piece of the page."""
    found: list[str] = re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return found[number]


class Client(DockerBox):
    """A second box on this machine: another name, and another address of loopback; both are of class recreate."""

    name = "agentbox-rc-client"
    address = "127.0.0.2"


def second(text: str) -> str:
    """The contract's manifest for that box, with these lines more."""
    own = MANIFEST.replace("agentbox-rc", Client.name)
    own = own.replace("api = {", f'api = {{ publish_address = "{Client.address}",')
    own = own.replace(
        "observability = {", f'observability = {{ publish_address = "{Client.address}",'
    )
    return with_lines(own, text)


def with_lines(manifest: str, text: str) -> str:
    """Dotted keys go into the tables that the manifest has already."""
    for line in text.splitlines():
        key, _, value = line.partition(" = ")
        table, _, rest = key.partition(".")
        if rest and f"{table} = {{" in manifest:
            name, _, leaf = rest.partition(".")
            manifest = re.sub(rf"\b{name} = {{[^{{}}]*}},? ?", "", manifest)
            inner = f"{name} = {{ {leaf} = {value} }}" if leaf else f"{name} = {value}"
            manifest = manifest.replace(f"{table} = {{", f"{table} = {{ {inner},")
        else:
            manifest += line + "\n"
    return manifest


def said(box: DockerBox) -> list[str]:
    """What the page's program prints of that box."""
    words = [sys.executable, "-c", block("python"), f"http://{box.address}:{API_PORT}", box.token()]
    done = subprocess.run(words, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def mesh(box: DockerBox) -> dict[str, Any]:
    found: dict[str, Any] = box.call("GET", "/v1/mesh/status").json
    return found


@pytest.fixture
def client(images: Images, tmp_path: Path) -> Iterator[Callable[[str], DockerBox]]:
    """Creates the second box with a manifest."""
    made: list[DockerBox] = []

    def make(manifest: str) -> DockerBox:
        made.append(
            Client(tmp_path / str(len(made)), images, Options(manifest=manifest, secrets=SECRETS))
        )
        return made[-1]

    yield make
    for box in made:
        box.remove()
    network = f"{Client.name}_agentbox"
    if docker("network", "ls", "--quiet", "--filter", f"name=^{network}$"):
        docker("network", "rm", network)


def test_rc_032_one_image_alone_and_federated(
    docker_box: Callable[..., DockerBox], client: Callable[[str], DockerBox], tmp_path: Path
) -> None:
    """The same program prints the same lines on a standalone box and on a client; the client's beads are the host's."""
    alone = client(second(""))
    alone.start()
    alone.wait_ready()
    expected = block("text").splitlines()
    assert said(alone) == expected
    alone.remove()

    gateway = json.loads(docker("network", "inspect", f"{Client.name}_agentbox"))[0]["IPAM"][
        "Config"
    ][0]["Gateway"]
    base = f"https://{gateway}:{FRONT_PORT}"
    host = docker_box(
        manifest=with_lines(MANIFEST, block("toml", 0).replace(PUBLIC, base)), secrets=SECRETS
    )
    host.start()
    host.wait_ready()
    with tls_front(tmp_path, gateway, FRONT_PORT, API_PORT) as certificate:
        box = client(second(block("toml", 1).replace(PUBLIC, base)))
        box.start()
        box.wait_ready()
        docker("cp", str(certificate), f"{box.name}:/var/lib/agentbox/mesh-ca.pem")
        box.call("POST", "/v1/mesh/join")
        status = wait_for(
            lambda: (found := mesh(box))["state"] == "active" and found, 60, lambda: str(mesh(box))
        )
        wait_for(
            lambda: box.get("/health").json["adapters"]["beads"]["state"] == "ok",
            30,
            lambda: str(mesh(box)),
        )
        assert said(box) == expected

        assert {one.inspect()["Image"] for one in (host, box)} == {alone.image.image_id}
        name = f"urn:agentbox:box:{status['instance_id']}:urn:agentbox:operator"
        beads = host.call("GET", f"/v1/beads?creator={name}").json["items"]
        assert sorted(bead["title"] for bead in beads if bead["status"] == "closed") == [
            "build", "publish", "release", "test",
        ]  # fmt: skip
        theirs = [
            event
            for event in _journal(host)
            if (event.get("origin") or {}).get("box") == status["instance_id"]
        ]
        assert "release.done" in {event["type"] for event in theirs}
        note = host.call("GET", f"/v1/pods/boxes/{status['instance_id']}/notes/release.txt")
        assert note.body == b"three of three"

        host.call("DELETE", f"/v1/mesh/sessions/{status['session_id']}")
        again = wait_for(
            lambda: (found := mesh(box))["session_id"] not in (None, status["session_id"]) and found, 60, lambda: str(mesh(box))
        )  # fmt: skip
        wait_for(lambda: mesh(box)["state"] == "active", 20, lambda: str(mesh(box)))
        box.stop()
        assert (
            host.call("GET", f"/v1/mesh/sessions/{again['session_id']}").json["state"] == "closed"
        )


def _journal(box: DockerBox) -> list[dict[str, Any]]:
    """All of it."""
    found: list[dict[str, Any]] = []
    while True:
        since = found[-1]["seq"] if found else -1
        page = box.call("GET", f"/v1/events?limit=1000&since={since}").json["events"]
        if not page:
            return found
        found += page

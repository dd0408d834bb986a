"""What an agent of a real host can reach: its places, and nothing of the control plane's."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.agent_host import AgentHostBox
from support.host_configs import host_config

from agentbox.adapters.orchestrator.local_process import LocalProcessOrchestrator
from agentbox.adapters.runtime.adapter import Deps
from agentbox.adapters.runtime.metrics import Metrics
from agentbox.agents.admission.admit import UNCOUNTED, Requester, admit
from agentbox.agents.admission.draft import AdmissionInputs
from agentbox.agents.config import HostConfig
from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.runs.confinement import PathVariables, build_confinement, resolve_program
from agentbox.contracts.orchestrator import AgentSpec, Limits
from agentbox.core.deadline import Deadline
from agentbox.core.ids import uuid7
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import SpawnError
from agentbox.manifest.gateway_port import GATEWAY_PORT

PROBE = """
import json, os, socket, sys
def tried(what):
    try: what()
    except OSError as error: return os.strerror(error.errno)
    return "passed"
def write(path):
    with open(path, "w") as stream: stream.write("x")
def connect(path):
    with socket.socket(socket.AF_UNIX) as one: one.connect(path)
%s
"""


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentHostBox]:
    made = AgentHostBox(tmp_path_factory.mktemp("box"))
    made.start()
    yield made
    made.stop()


@pytest.fixture
async def adapter(box: AgentHostBox) -> AsyncIterator[LocalProcessOrchestrator]:
    made = LocalProcessOrchestrator(box.slot_config(), Deps(metrics=Metrics()))
    await made.open(Deadline.after(5))
    yield made
    await made.close()


async def probe_output(
    adapter: LocalProcessOrchestrator, profile: str, script: str, *arguments: str
) -> tuple[list[str], Any]:
    """The words that the script printed, one per line, and the isolation report."""
    spec = AgentSpec(
        name="probe",
        argv=("/usr/bin/python3", "-I", "-c", PROBE % script, *arguments),
        profile=profile,
    )
    found = await adapter.run_once(spec, request_id=uuid7())
    assert found.exit.code == 0, found.stderr
    return found.stdout.decode().splitlines(), found.isolation


async def test_the_control_plane_is_closed(
    adapter: LocalProcessOrchestrator, box: AgentHostBox
) -> None:
    """State, token, plan of the boot, socket, other agents' directories and the API's port: all
    refused."""
    paths = box.paths
    targets = (paths.token("agent-host"), paths.slot("orchestrator") / "agents.db")
    folders = (paths.state, paths.run, paths.branches, Path("/"), Path("/tmp"))
    assert all(path.exists() for path in (*targets, paths.state, paths.run))
    script = """
for path in json.loads(sys.argv[1]):
    print(tried(lambda: open(path, "rb").close())); print(tried(lambda: write(path)))
for path in json.loads(sys.argv[2]):
    print(tried(lambda: os.listdir(path))); print(tried(lambda: os.mkdir(path + sys.argv[4])))
print(tried(lambda: connect(sys.argv[3])))
print(tried(lambda: socket.create_connection(("127.0.0.1", 9090))))
"""
    lists = (json.dumps([str(path) for path in group]) for group in (targets, folders))
    words, report = await probe_output(
        adapter, "sandboxed", script, *lists, str(paths.agent_host_socket), f"/{uuid7()}"
    )
    assert set(words) == {"Permission denied"}
    assert len(words) == 2 * len(targets) + 2 * len(folders) + 2
    assert {name for name, row in report.items() if row["state"] == "enforced"} >= {
        "network", "signals", "abstract_sockets", "pathname_sockets", "syscalls",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("profile", "writes", "reads"),
    [
        ("sandboxed", "passed", "passed"),
        ("standard", "passed", "passed"),
        ("readonly", "Permission denied", "passed"),
    ],
)
async def test_places(
    adapter: LocalProcessOrchestrator, box: AgentHostBox, profile: str, writes: str, reads: str
) -> None:
    """The workspace as the profile grants it, as a branch for an agent that writes; private
    directories and the toolchain always."""
    (box.paths.workspace / "file").write_text("text")
    script = """
here = os.environ["AGENTBOX_WORKSPACE"]
print(tried(lambda: write(here + "/made"))); print(tried(lambda: open(here + "/file").close()))
print(tried(lambda: write(os.environ["TMPDIR"] + "/x"))); print(tried(lambda: write(os.environ["HOME"] + "/x")))
print(tried(lambda: os.listdir("/usr/bin"))); print(tried(lambda: write("/usr/made"))); print(tried(lambda: write("/dev/null")))
"""
    words, _ = await probe_output(adapter, profile, script, str(box.paths.workspace))
    assert words[:2] == [writes, reads]
    assert words[2:5] == ["passed"] * 3
    assert words[5] in ("Permission denied", "Read-only file system")
    assert words[6] == "passed"


async def test_an_agent_cannot_reach_another(adapter: LocalProcessOrchestrator) -> None:
    """No signal to another agent, nor to its reaper, nor to the host."""
    neighbour = await adapter.spawn(
        AgentSpec(name="neighbour", argv=("sleep", "1000"), profile="sandboxed"), request_id=uuid7()
    )
    pid = (await adapter.get(neighbour.agent_id)).pid
    words, _ = await probe_output(
        adapter,
        "sandboxed",
        "for pid in (int(sys.argv[1]), os.getppid(), 1): print(tried(lambda: os.kill(pid, 0)))",
        str(pid),
    )
    assert words == ["Operation not permitted"] * 3
    await adapter.terminate(neighbour)


async def test_the_control_plane_keeps_its_modes(
    adapter: LocalProcessOrchestrator, box: AgentHostBox
) -> None:
    """No mode, time or owner of its directories and files changes; each attempt is counted. The
    agent's own files change."""
    targets = [
        str(path)
        for path in (
            box.paths.state,
            box.paths.run,
            box.paths.token("agent-host"),
            box.paths.prefix,
        )
    ]
    before = [Path(path).stat() for path in targets]
    script = """
for path in json.loads(sys.argv[1]):
    print(tried(lambda: os.chmod(path, 0))); print(tried(lambda: os.utime(path, (1, 1)))); print(tried(lambda: os.chown(path, 4, 4)))
write(os.environ["HOME"] + "/x"); print(tried(lambda: os.chmod(os.environ["HOME"] + "/x", 0o700)))
"""
    words, report = await probe_output(adapter, "sandboxed", script, json.dumps(targets))
    assert words == ["Operation not permitted"] * 3 * len(targets) + ["passed"]
    assert [Path(path).stat() for path in targets] == before
    assert (report["filesystem"]["state"], report["filesystem"]["by"]) == (
        "enforced",
        "kernel, reaper",
    )


@pytest.mark.parametrize("profile", ["minimal", "readonly", "sandboxed", "standard"])
async def test_the_gateways_address_is_open_to_all(
    adapter: LocalProcessOrchestrator, profile: str
) -> None:
    """Whether or not a gateway runs there, the call is no denial; calls to the API's port, the
    metrics port and the gateway's on another address of loopback are."""
    script = """
for host, port in json.loads(sys.argv[1]): print(tried(lambda: socket.create_connection((host, port))))
"""
    places = [
        ("127.0.0.1", GATEWAY_PORT),
        ("127.0.0.1", 9090),
        ("127.0.0.1", 9091),
        ("127.0.0.2", GATEWAY_PORT),
    ]
    words, report = await probe_output(adapter, profile, script, json.dumps(places))
    assert words[0] in ("passed", "Connection refused")
    assert words[1:] == ["Permission denied"] * 3
    assert report["network"]["state"] == "enforced"


async def test_a_server_is_the_agents_alone(adapter: LocalProcessOrchestrator) -> None:
    """A test suite with a server on loopback passes; another agent neither reaches the server nor
    takes its port."""
    serve = """
import http.server, sys, threading, time, urllib.request
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://localhost:{server.server_port}/"
print(server.server_port, urllib.request.urlopen(url, timeout=5).status, flush=True)
time.sleep(1000)
"""
    neighbour = await adapter.spawn(
        AgentSpec(name="server", argv=("/usr/bin/python3", "-I", "-c", serve), profile="sandboxed"),
        request_id=uuid7(),
    )
    said = b""
    async with asyncio.timeout(10):
        async for item in adapter.stream(neighbour.agent_id):
            if item.kind == "stdout":
                said += item.data
            if b"\n" in said:
                break
    port, status = said.decode().split()
    assert status == "200"
    script = """
port = int(sys.argv[1])
print(tried(lambda: socket.create_connection(("127.0.0.1", port)))); print(tried(lambda: socket.create_server(("", port))))
"""
    words, _ = await probe_output(adapter, "sandboxed", script, port)
    assert words == ["Permission denied", "Address already in use"]
    await adapter.terminate(neighbour)


async def test_a_minimal_agent_runs_its_program_and_nothing_else(
    adapter: LocalProcessOrchestrator, box: AgentHostBox
) -> None:
    """It starts, finds the workspace closed, and cannot run a second program."""
    (box.paths.workspace / "file").write_text("text")
    script = 'print(tried(lambda: open(sys.argv[1]).close())); print(tried(lambda: os.posix_spawn("/usr/bin/env", ["env"], {})))'
    words, _ = await probe_output(adapter, "minimal", script, str(box.paths.workspace / "file"))
    assert words == ["Permission denied"] * 2


@pytest.mark.parametrize("name", ["a*b", "$x"])
def test_a_place_that_the_kernel_cannot_be_told(name: str, tmp_path: Path) -> None:
    """A program or directory whose name reads as a pattern is refused by name, never granted too
    widely."""
    config = host_config(Paths(tmp_path / name))
    with pytest.raises(SpawnError) as caught:
        build_confinement(_entry(config), config, PathVariables(workspace=config.paths.workspace))
    assert caught.value.members["stage"] == "profile"


def test_a_workspace_above_the_state_is_refused(tmp_path: Path) -> None:
    """Also behind a link: a grant of it would expose the control plane's directories."""
    box = tmp_path / "project/box"
    box.mkdir(parents=True)
    (box / "workspace").symlink_to(tmp_path / "project")
    config = host_config(Paths(box))
    with pytest.raises(SpawnError, match="the control plane"):
        build_confinement(_entry(config), config, PathVariables(workspace=config.paths.workspace))


def test_a_command_is_granted_over_the_systems_links_only(tmp_path: Path) -> None:
    """The value of `$COMMAND`: nothing where an agent may have put a link, and never the link's
    target."""
    config = host_config(Paths(tmp_path), writable_dirs=("/workspace",))
    workspace, other = tmp_path / "workspace", tmp_path / "private"
    for folder in (workspace, other):
        folder.mkdir()
        (folder / "tool").touch(mode=0o755)
    (workspace / "planted").symlink_to(other / "tool")
    (workspace / "folder").symlink_to(other)
    found = {
        name: resolve_program(f"./{name}", str(workspace), {}, config)
        for name in ("tool", "planted", "folder/tool")
    }
    assert found == {"tool": f"{workspace}/tool", "planted": "", "folder/tool": ""}
    assert resolve_program("sh", "/", {"PATH": "/bin"}, config) == os.path.realpath("/bin/sh")
    assert resolve_program("planted", "/", {"PATH": str(workspace)}, config) == ""


def _entry(config: HostConfig) -> AgentRecord:
    spec = AgentSpec(name="x", argv=("x",), profile="sandboxed")
    return AgentRecord(
        agent_id="x",
        spec=spec,
        limits=Limits(),
        principal="",
        request_id="",
        grant_set=admit(
            spec,
            Requester(principal="", request_id=""),
            AdmissionInputs(config=config, now=0),
            UNCOUNTED,
        ).grant_set,
    )

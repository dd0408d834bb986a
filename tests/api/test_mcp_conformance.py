"""The public conformance suite at both sides of mcp-host: its client scenarios at a server of the suite that an agent
calls, and its server scenarios at a server of the official SDK behind the gateway."""

import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import npm_tools
import pytest
from helpers import until
from support import mcp_conformance_client
from support.mcp_askers import SUITE_ASKER
from support.mcp_box import McpBox
from support.mcp_conformance import Forwarder, failed_checks, forwarding
from support.mcp_servers import EVERYTHING, SCHEMAS

SUITE = (
    str(npm_tools.NODE),
    str(npm_tools.MODULES / "@modelcontextprotocol/conformance/dist/index.js"),
)
PURELIB = sysconfig.get_path("purelib")
STATELESS, HANDSHAKE = "2026-07-28", "2025-11-25"
CLIENT = (
    "initialize",
    "tools_call",
    "request-metadata",
    "http-standard-headers",
    "http-custom-headers",
    "http-invalid-tool-headers",
    "json-schema-ref-no-deref",
    "json-schema-2020-12-preservation",
    "sse-retry",
)
SERVER = (
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
)
REQUESTS = (
    "tools-call-elicitation",
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
)
INPUT_REQUIRED = tuple(
    f"input-required-result-{name}"
    for name in (
        "basic-elicitation",
        "request-state",
        "multi-round",
        "missing-input-response",
        "result-type",
        "tampered-state",
        "validate-input",
        "ignore-extra-params",
    )
)
ROWS = tuple(scenario.replace("_", "-") for scenario in CLIENT)
MANIFEST = f"""
[agents.user]
command = ["sh", "-c", 'echo "$AGENTBOX_TOKEN"; exec sleep 1000']
mcp = [{", ".join(f'"{row}"' for row in (*ROWS, "everything", "schemas", "asking"))}]
[policies.sdk]
base = "service"
fs = [{{ mode = "allow", operations = ["read"], patterns = ["{PURELIB}/**", "{sys.base_prefix}/**"] }}]
[mcp.servers.everything]
command = ["{Path(sys.executable).resolve()}", "-I", "-c", '''{EVERYTHING.format(paths=[PURELIB])}''']
profile = "sdk"
instance = "shared"
pin = "first-use"
[mcp.servers.asking]
command = ["{Path(sys.executable).resolve()}", "-I", "-c", '''{SUITE_ASKER.format(paths=[PURELIB])}''']
profile = "sdk"
pin = "first-use"
elicitation = true
[mcp.servers.schemas]
command = ["/usr/bin/python3", "-c", '''{SCHEMAS}''']
instance = "shared"
pin = "first-use"
[egress]
allow = ["127.0.0.1:{{port}}"]
allow_private = ["127.0.0.1:{{port}}"]
""" + "".join(
    f"""
[mcp.servers.{row}]
transport = "http"
url = "http://127.0.0.1:{{port}}/{row}"
pin = "first-use"
"""
    for row in ROWS
)


@pytest.fixture(scope="module")
def forwarder() -> Iterator[Forwarder]:
    with forwarding() as running:
        yield running


@pytest.fixture(scope="module")
def mcp(prefix: Path, forwarder: Forwarder) -> Iterator[McpBox]:
    manifest = MANIFEST.replace("{port}", str(forwarder.server_port))
    with McpBox(prefix, manifest) as box:
        yield box


@pytest.fixture(scope="module")
def token(mcp: McpBox) -> str:
    return mcp.token("user")


@pytest.mark.parametrize("scenario", CLIENT)
def test_client(
    mcp: McpBox, token: str, forwarder: Forwarder, scenario: str, tmp_path: Path
) -> None:
    """An agent lists and calls the tools of the suite's server, through gateway, mcp-host, bridge and proxy."""
    environment = {
        **os.environ,
        "AGENT_TOKEN": token,
        "GATEWAY": f"http://127.0.0.1:{mcp.port}",
        "FORWARDER": f"http://127.0.0.1:{forwarder.server_port}",
    }
    command = f"{sys.executable} {mcp_conformance_client.__file__}"
    npm_tools.install()
    words = [*SUITE, "client", "--command", command, "--scenario", scenario]
    assert failed_checks(words, tmp_path, environment) == set()


@pytest.fixture(scope="module")
def address(mcp: McpBox, token: str) -> Iterator[str]:
    """The gateway behind a proxy that adds the token, which the suite cannot send."""
    npm_tools.install()
    for server in ("everything", "schemas", "asking"):
        until(
            lambda name=server: _runs(mcp, name), 240
        )  # on a busy machine it takes more than 60 s
    words = [str(npm_tools.NODE), str(npm_tools.HERE / "bearer_proxy.mjs"), str(mcp.port), token]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as proxy:
        assert proxy.stdout is not None
        yield f"http://127.0.0.1:{int(proxy.stdout.readline())}/mcp"
        proxy.terminate()


def _runs(box: McpBox, name: str) -> bool:
    """Whether a server has told its tools. Raises AssertionError if it cannot start."""
    shown = box.test(name)
    assert shown.state == "running" or "did not answer within" in shown.detail, shown.detail
    return shown.state == "running"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("revision", [STATELESS, HANDSHAKE])
@pytest.mark.parametrize("scenario", [*SERVER, "json-schema-2020-12"])
def test_server(address: str, scenario: str, revision: str, tmp_path: Path) -> None:
    """Results of a server pass the gateway as they are, in both eras."""
    name = "schemas" if scenario.startswith("json") else "everything"
    words = [*SUITE, "server", "--url", f"{address}/{name}", "--scenario", scenario]
    assert failed_checks([*words, "--spec-version", revision], tmp_path) == set()


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("scenario", "revision"),
    [*((name, HANDSHAKE) for name in REQUESTS), *((name, STATELESS) for name in INPUT_REQUIRED)],
)
def test_questions(address: str, scenario: str, revision: str, tmp_path: Path) -> None:
    """Questions of a server reach the suite as its client, and its answers the server. The suite's other scenarios of
    input ask for sampling or roots."""
    words = [*SUITE, "server", "--url", f"{address}/asking", "--scenario", scenario]
    assert failed_checks([*words, "--spec-version", revision], tmp_path) == set()

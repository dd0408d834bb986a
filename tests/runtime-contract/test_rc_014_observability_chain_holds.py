"""RC-014: one metrics port, one log level and one trace endpoint, from the manifest to compose, the program's
environment, the effect, `/v1/meta` and `agentbox health`.

Columns D and H.
"""

import json
from collections.abc import Callable

from harness.box import Box
from harness.collector import collector
from harness.container import NETWORK, DockerBox, docker
from harness.outcomes import MANIFEST, METRICS_PORT
from harness.waiting import wait_for

DEFAULT_PORT = 9091


def told_debug(box: Box) -> list[str]:
    """What the box's programs (not its boot) logged at level debug."""
    lines = (json.loads(line) for line in box.log_lines() if line.startswith("{"))
    ours = (entry for entry in lines if "agentbox.stage" not in entry)
    return [entry["event"] for entry in ours if entry["level"] == "debug"]


def environment_of(box: Box, program: str) -> set[str]:
    return set(box.text(f"/proc/{box.program_pid(program)}/environ").split("\0"))


def test_rc_014_metrics_port(running: Box) -> None:
    """Another port than the default: listener, `/v1/meta`, the programs' environment, the scrape of `agentbox health`."""
    assert METRICS_PORT != DEFAULT_PORT
    meta = running.get("/v1/meta").json["observability"]
    assert (meta["metrics_port"], meta["metrics_endpoint"]) == (
        METRICS_PORT,
        f":{METRICS_PORT}/metrics",
    )
    scraped = running.get("/metrics", port=METRICS_PORT)
    assert (scraped.status, b"agentbox_ready 1" in scraped.body) == (200, True)
    assert running.get("/livez", port=METRICS_PORT).status == 404
    assert f"AGENTBOX_METRICS_PORT={METRICS_PORT}" in environment_of(running, "management-api")
    health = running.cli("health")
    assert (health.code, f"samples on port {METRICS_PORT}" in health.out) == (0, True), health.err
    if isinstance(running, DockerBox):
        found = running.inspect()
        assert f"{METRICS_PORT}/tcp" in found["Config"]["ExposedPorts"]
        published = found["HostConfig"]["PortBindings"][f"{METRICS_PORT}/tcp"]
        assert published == [{"HostIp": "127.0.0.1", "HostPort": str(METRICS_PORT)}]


def test_rc_014_quiet(running: Box) -> None:
    """The contract's manifest sets info: no program logs anything at level debug, and nothing is
    traced."""
    meta = running.get("/v1/meta").json["observability"]
    assert (meta["log_level"], meta["otlp"]) == ("info", False)
    assert "AGENTBOX_LOG_LEVEL=info" in environment_of(running, "management-api")
    assert told_debug(running) == []


def test_rc_014_log_level_and_traces(make_box: Callable[..., Box]) -> None:
    """log_level = debug and an endpoint: both in compose, in the programs' environment, in `/v1/meta`, and in effect."""
    with collector() as traces:
        endpoint = f"http://{_host_as_seen_by(make_box)}:{traces.port}"
        wanted = f'log_level = "debug", otlp_endpoint = "{endpoint}", metrics_port = '
        box = make_box(manifest=MANIFEST.replace("metrics_port = ", wanted))
        box.start()
        box.wait_ready()
        meta = box.get("/v1/meta").json["observability"]
        assert (meta["log_level"], meta["otlp"]) == ("debug", True)
        words = {"AGENTBOX_LOG_LEVEL=debug", f"AGENTBOX_OTLP_ENDPOINT={endpoint}"}
        assert words <= environment_of(box, "management-api")
        if isinstance(box, DockerBox):
            assert words <= set(box.inspect()["Config"]["Env"])
        assert told_debug(box) != []
        assert box.call("GET", "/v1/beads").status == 200
        spans = wait_for(lambda: list(traces.posted), 15, "a batch of spans")
        assert spans[0][0] == "/v1/traces"
        assert b"agentbox" in spans[0][1]


def _host_as_seen_by(make_box: Callable[..., Box]) -> str:
    """An address of this host that a box of that engine reaches: for a container the gateway of its
    network, which earlier boxes leave."""
    box = make_box()
    if not isinstance(box, DockerBox):
        return "127.0.0.1"
    if not docker("network", "ls", "--quiet", "--filter", f"name=^{NETWORK}$"):
        box.create()
    gateway: str = json.loads(docker("network", "inspect", NETWORK))[0]["IPAM"]["Config"][0][
        "Gateway"
    ]
    return gateway

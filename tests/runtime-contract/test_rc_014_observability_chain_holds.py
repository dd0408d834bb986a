"""RC-014: one metrics port, one log level, from the manifest to compose, the listener, `/v1/meta` and `agentbox health`."""

from collections.abc import Callable

from harness.box import MANIFEST, METRICS_PORT, Box

LOUD = MANIFEST.replace("metrics_port = ", 'log_level = "debug", metrics_port = ')


def test_rc_014(make_box: Callable[..., Box]) -> None:
    """The port of the manifest is the port that is listened on and named; the log level has an effect."""
    box = make_box(manifest=LOUD)
    box.start()
    box.wait_ready()
    meta = box.get("/v1/meta").json["observability"]
    assert meta["metrics_port"] == METRICS_PORT
    assert meta["metrics_endpoint"] == f":{METRICS_PORT}/metrics"
    assert meta["log_level"] == "debug"
    scraped = box.get("/metrics", port=METRICS_PORT)
    assert scraped.status == 200
    assert b"agentbox_ready 1" in scraped.body
    assert box.get("/livez", port=METRICS_PORT).status == 404
    assert any('"level": "debug"' in line or '"level":"debug"' in line for line in box.log_lines())


def test_rc_014_compose_names_the_port(docker_box: Callable[..., Box]) -> None:
    """Compose publishes the metrics port on loopback and hands it to the programs; the image exposes it."""
    box = docker_box()
    box.start()
    box.wait_ready()
    found = box.inspect()  # type: ignore[attr-defined]
    assert f"{METRICS_PORT}/tcp" in found["Config"]["ExposedPorts"]
    assert found["HostConfig"]["PortBindings"][f"{METRICS_PORT}/tcp"] == [{"HostIp": "127.0.0.1", "HostPort": str(METRICS_PORT)}]
    assert f"AGENTBOX_METRICS_PORT={METRICS_PORT}" in found["Config"]["Env"]

"""`agentbox health`: health of the box and one scrape of its metrics port."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.context import CliContext


@click.command(name="health")
@click.pass_obj
def command(cli: CliContext) -> int:
    """Show /health and scrape the metrics port given by /v1/meta. Exit 1 if degraded."""
    record = cli.running_record()
    health = json.loads(_get(record.api_url, "/health"))
    meta = json.loads(_get(record.api_url, "/v1/meta"))
    port = int(meta["observability"]["metrics_port"])
    host = urlsplit(record.api_url).hostname
    samples = [
        line
        for line in _get(f"http://{host}:{port}", "/metrics").splitlines()
        if line and not line.startswith("#")
    ]
    cli.out.document(
        {
            "health": health,
            "exceptions": meta["security"]["exceptions"],
            "metrics": {"port": port, "samples": len(samples)},
        }
    )
    _print_health(cli, health)
    cli.out.line(f"exceptions   {', '.join(meta['security']['exceptions']) or 'none (baseline)'}")
    cli.out.line(f"metrics      {len(samples)} samples on port {port}")
    return ExitCode.DONE if health["status"] == "ok" else ExitCode.BAD


def _print_health(cli: CliContext, health: dict[str, Any]) -> None:
    cli.out.line(
        f"status       {health['status']}   up {health['uptime']:.0f} s   version "
        f"{health['version']}"
    )
    for slot, adapter in sorted(health["adapters"].items()):
        cli.out.line(f"slot         {slot:<13} {adapter['state']:<10} {adapter['impl']}")
    for program, state in sorted(health["programs"].items()):
        cli.out.line(f"program      {program:<13} {state}")
    cli.out.line(
        f"drift        {'; '.join(health['posture']['drift']) or 'none: the box matches its plan'}"
    )
    for text in health["protections_absent"]:
        cli.out.line(f"unprotected  {text}")


def _get(url: str, path: str) -> str:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().read().decode()
    except (OSError, http.client.HTTPException) as error:
        raise AgentboxError(
            f"cannot reach {url}{path}: {error}",
            "Check whether the box is up: `agentbox status`.",
            exit_code=ExitCode.NOT_RUNNING,
        ) from error
    finally:
        connection.close()

"""A real Prometheus, with the rendered configuration, scrapes a real API: the series that the alerts ask for exist."""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from helpers import until

from agentbox.client import BoxClient
from agentbox.render.prometheus import ALERTS, CONFIG_FILE, prometheus
from agentbox.testing.api_box import ApiBox
from agentbox.testing.ports import free_port

_OF_PROMETHEUS = {"up"}  # made by the scrape itself


class Server:
    """A running Prometheus."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/api/v1"

    def get(self, path: str, **query: str) -> Any:
        """The data of an answer; None while it does not answer."""
        try:
            answer = httpx.get(f"{self._url}/{path}", params=query, trust_env=False)
        except httpx.TransportError:
            return None
        return answer.json().get("data") if answer.status_code == 200 else None

    def value(self, expression: str) -> float | None:
        """Of the only series of an instant query; None while there is none."""
        rows = (self.get("query", query=expression) or {"result": []})["result"]
        return float(rows[0]["value"][1]) if len(rows) == 1 else None


@pytest.fixture(scope="module")
def server(box: ApiBox) -> Iterator[Server]:
    """Scraping each second instead of each 15."""
    folder, port = Path(tempfile.mkdtemp(prefix="abx-prom-", dir="/var/tmp")), free_port()
    for name, text in prometheus(box.plan).items():
        quick = text.replace("scrape_interval: '15s'", "scrape_interval: '1s'").replace(
            "timeout: '5s'", "timeout: '1s'"
        )
        (folder / name).write_text(quick)
    argv = [
        "prometheus", f"--config.file={folder / CONFIG_FILE}", f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]  # fmt: skip
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(argv, stdout=log, stderr=log)
    try:
        yield Server(port)
    finally:
        process.terminate()
        process.wait(20)
        shutil.rmtree(folder)


def test_the_box_is_up_and_named(server: Server, box: ApiBox) -> None:
    """The rendered target is where the listener is, and the label says which box it is."""
    until(lambda: server.value(f'up{{job="agentbox",box="{box.plan.name}"}}') == 1, 20)
    assert server.value("agentbox_build_info") == 1
    assert server.get("targets")["activeTargets"][0]["lastError"] == ""


def test_every_series_that_an_alert_asks_for_is_exposed(server: Server, client: BoxClient) -> None:
    """By name: with samples, or declared where nothing has happened yet."""
    client.call("list_beads")
    known = until(lambda: server.get("targets/metadata"), 20)
    names = {row["metric"] for row in known}
    asked = {name for alert in ALERTS for name in re.findall(r"[a-z_]+(?=\{)", alert.expr)} - _OF_PROMETHEUS
    assert len(asked) > 8
    assert {name for name in asked if name not in names and name.removesuffix("_total") not in names} == set()


def test_every_rule_evaluates(server: Server) -> None:
    """Prometheus says of each that it is healthy."""

    def evaluated() -> list[dict[str, Any]]:
        groups = (server.get("rules") or {"groups": []})["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        return rules if rules and all(rule["health"] != "unknown" for rule in rules) else []

    rules = until(evaluated, 90)
    assert {rule["name"]: (rule["health"], rule.get("lastError", "")) for rule in rules} == {
        alert.name: ("ok", "") for alert in ALERTS
    }


def test_the_journal_s_size_is_measured_against_its_bound(server: Server) -> None:
    """The two gauges divide to a share between 0 and 1."""
    share = until(lambda: server.value("agentbox_journal_bytes / agentbox_journal_max_bytes"), 30)
    assert 0 < share < 1

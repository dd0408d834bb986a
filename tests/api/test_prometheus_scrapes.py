"""A real Prometheus, with the rendered configuration, scrapes a real API: the series that the
alerts use exist."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from helpers import until
from prometheus_server import Server, serving
from support.api_box import ApiBox

from agentbox.client import BoxClient
from agentbox.plan.render.prometheus import ALERTS, prometheus

_OF_PROMETHEUS = {"up"}  # created by the scrape itself


@pytest.fixture(scope="module")
def server(box: ApiBox) -> Iterator[Server]:
    """Scraping each second instead of each 15."""
    quick = {
        name: text.replace("scrape_interval: '15s'", "scrape_interval: '1s'").replace(
            "timeout: '5s'", "timeout: '1s'"
        )
        for name, text in prometheus(box.plan).items()
    }
    with serving(quick) as found:
        yield found


def test_the_box_is_up_and_named(server: Server, box: ApiBox) -> None:
    """The rendered target matches the listener, and the label identifies the box."""
    until(lambda: server.value(f'up{{job="agentbox",box="{box.plan.name}"}}') == 1, 20)
    assert server.value("agentbox_build_info") == 1
    assert server.get("targets")["activeTargets"][0]["lastError"] == ""


def test_every_series_that_an_alert_asks_for_is_exposed(server: Server, client: BoxClient) -> None:
    """By name: with samples, or declared where nothing has happened yet."""
    client.call("list_beads")
    known = until(lambda: server.get("targets/metadata"), 20)
    names = {row["metric"] for row in known}
    asked = {
        name for alert in ALERTS for name in re.findall(r"[a-z_]+(?=\{)", alert.expr)
    } - _OF_PROMETHEUS
    assert len(asked) > 8
    assert {
        name for name in asked if name not in names and name.removesuffix("_total") not in names
    } == set()


def test_every_rule_evaluates(server: Server) -> None:
    """Prometheus reports each as healthy."""

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

"""A real Prometheus evaluates the shipped rules over a history of denials: which agents raise an
alert, and which do not."""

import time
from collections.abc import Callable
from typing import Any

from helpers import until
from prometheus_server import Server, serving
from support.plans import plan_of

from agentbox.plan.render.prometheus import CONFIG_FILE, prometheus

SECONDS, EVERY = 1800, 15  # of history, and between two scrapes
ALERTS = ("AgentboxAttack", "AgentboxDenials")


def counter(agent: str, kind: str, value: Callable[[float], float | None]) -> list[str]:
    """Samples of a counter up to one minute from now; `value` receives minutes since the beginning,
    None = no sample."""
    begin = int(time.time()) - SECONDS
    labels = (
        f'job="agentbox",box="agentbox",agent="{agent}",class="{kind}",layer="reaper",rule="socket"'
    )
    values = [(begin + at, value(at / 60)) for at in range(0, SECONDS + 60, EVERY)]
    return [
        f"agentbox_denied_total{{{labels}}} {found:.0f} {at}"
        for at, found in values
        if found is not None
    ]


HISTORY = (
    ("refused-often", "policy", lambda minute: 5 * minute),
    ("refused-now-and-then", "policy", lambda minute: minute / 2),
    ("refused-long-ago", "policy", lambda minute: min(100, 50 * minute)),
    ("lists-folders", "benign", lambda minute: 50 * minute),
    ("attacks-anew", "attack", lambda minute: 1 if minute > 27 else None),
    ("attacks-again", "attack", lambda minute: 1 if minute < 25 else 2),
    ("attacked-long-ago", "attack", lambda _minute: 1),
)


def firing(server: Server) -> list[tuple[str, str, str]]:
    """Alert, agent and state, of those that are about refusals."""
    found: list[dict[str, Any]] = (server.get("alerts") or {"alerts": []})["alerts"]
    named = [
        (one["labels"]["alertname"], one["labels"].get("agent", ""), one["state"]) for one in found
    ]
    return sorted(one for one in named if one[0] in ALERTS)


def evaluated(server: Server) -> bool:
    groups = (server.get("rules") or {"groups": []})["groups"]
    rules = [rule for group in groups for rule in group["rules"] if rule["name"] in ALERTS]
    return len(rules) == len(ALERTS) and {rule["health"] for rule in rules} == {"ok"}


def test_alerts_of_refusals_fire_and_stay_silent() -> None:
    """One server, all histories at once: an alert for each agent that is due one, and for no other."""
    files = dict(prometheus(plan_of("")))
    begin = files[CONFIG_FILE].index("rule_files")
    files[CONFIG_FILE] = (
        f"global:\n  evaluation_interval: 1s\n{files[CONFIG_FILE][begin:].partition('scrape_configs')[0]}"
    )
    lines = [line for agent, kind, value in HISTORY for line in counter(agent, kind, value)]
    history = "\n".join(("# TYPE agentbox_denied counter", *lines, "# EOF\n"))
    with serving(files, history) as server:
        until(lambda: evaluated(server), 30)
        assert firing(server) == [
            ("AgentboxAttack", "attacks-again", "firing"),
            ("AgentboxAttack", "attacks-anew", "firing"),
            ("AgentboxDenials", "refused-often", "firing"),
        ]

"""The battery against a whole box below a prefix: real boot, supervisord, API, gateway, agent host; as no root."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from agentbox.client import BoxClient
from agentbox.core.paths import Paths
from agentbox.host.doctor.attacking import attack, facts_of
from agentbox.host.doctor.formats.plain import plain
from agentbox.plan.model import Api, Observability, Plan, Program, Ready
from agentbox.sandbox.attacks.catalogue import BY_NAME, LINES
from agentbox.testing.agent_host import LIMITS
from agentbox.testing.api_box import SLOTS
from agentbox.testing.model_server import ModelServer
from agentbox.testing.ports import free_port
from agentbox.testing.prefix_box import PYTHON, PrefixBox, make_plan, once

_TOKEN = "a-token-from-outside-0123456789"
_KEY = "MODEL_KEY"
_MODULES = (("management-api", 10, "api", 11), ("gateway", 20, "gateway", 2), ("agent-host", 30, "agents", 8))
_READY_SECONDS = 90.0


def attacked(
    names: Iterable[str] = (), *, without: str = "", limits: Mapping[str, Any] = LIMITS, patience: float = 10.0
) -> Mapping[str, Any]:
    """The scorecard of those lines, none = all, as `plain` has it; `asked`: paths at which a provider of models was; `quiet`: what
    the journal has of refusals that were benign; `classes`: those of other refusals, with the rule. `without`: a layer of `layerless`
    that the agents lack. `limits`: of the plan. `patience`: as in Facts."""
    with box(without, limits=limits) as found:
        lines = [BY_NAME[name] for name in names] or LINES
        facts = replace(facts_of(found.plan, found.paths), patience=patience)
        card = plain(attack(found.client, facts, lines))
        asked = [request.path for request in found.models.requests]
        exits = [data["quiet"] for data in _events(found.client, "agent.exited")]
        classes = sorted({(data["class"], data["rule"]) for data in _events(found.client, "policy.denied")})
        return {**card, "asked": asked, "quiet": exits, "classes": classes}


def _events(client: BoxClient, kind: str) -> list[dict[str, Any]]:
    query = {"types": kind, "limit": 1000}
    return [event["data"] for event in client.call("read_events", query=query)["events"]]


@dataclass(frozen=True)
class Box:
    """A ready box, a client of its admin, and the server behind its providers of models."""

    client: BoxClient
    plan: Plan
    paths: Paths
    models: ModelServer


@contextmanager
def box(without: str = "", **changes: Any) -> Iterator[Box]:
    """`changes` are fields of Plan."""
    with ModelServer() as models, PrefixBox() as running:
        plan = running.install(_plan(without, **{"providers": _providers(models.url), **changes}))
        running.start({"BOX_TOKEN": _TOKEN, _KEY: "operator-key-0123456789abcdef"})
        running.until_event("BootstrapCompleted", _READY_SECONDS)
        with BoxClient(f"http://127.0.0.1:{plan.api.port}", token=_TOKEN, timeout=30) as client:
            until = time.monotonic() + _READY_SECONDS
            while not _up(client, whole=not without) and time.monotonic() < until:
                time.sleep(0.05)
            yield Box(client, plan, running.paths, models)


def _plan(without: str, **changes: Any) -> Plan:
    api = Api(
        port=free_port(), publish_address="127.0.0.1", auth="token", max_body=4 << 20, public_base="", token_env="BOX_TOKEN",
    )  # fmt: skip
    watch = Observability(metrics_port=free_port(), publish_address="127.0.0.1", otlp_endpoint="", log_level="info")
    made = make_plan(api.port, tuple(_programs(without)))
    return replace(
        made,
        **{
            "api": api,
            "observability": watch,
            "slots": SLOTS,
            "limits": LIMITS,
            "secrets": ("BOX_TOKEN", _KEY),
            **changes,
        },
    )


def _up(client: BoxClient, *, whole: bool) -> bool:
    """Ready; or, where the canaries must say that a layer is missed, able to start agents."""
    return client.ready().ready if whole else client.health()["adapters"]["orchestrator"]["state"] == "ok"


def _providers(url: str) -> dict[str, dict[str, Any]]:
    shared = {"enabled": True, "env_var": _KEY, "models": ["*"], "max_concurrent": 4, "timeout_seconds": 30}
    return {
        kind: {**shared, "kind": kind, "base_url": url + path} for kind, path in (("openai", "/v1"), ("anthropic", ""))
    }


def _programs(without: str) -> Iterator[Program]:
    yield once("bootstrap", 5, "agentbox.box.boot", env={"AGENTBOX_BOOTSTRAP_STAGE": "B"})
    for name, priority, module, seconds in _MODULES:
        argv: tuple[str, ...] = (PYTHON, "-I", "-m", f"agentbox.{module}")
        if without and module == "agents":
            argv = (PYTHON, "-I", "-m", "agentbox.testing.layerless", without)
        yield Program(
            name=name, priority=priority, argv=argv, required=True, ready=Ready(by="notify"), stop_seconds=seconds
        )
    yield once("bootstrap-seal", 99, "agentbox.box.seal.main", required=False)


if __name__ == "__main__":
    print(json.dumps(attacked(sys.argv[1:]), indent=1))

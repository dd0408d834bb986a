"""Runs attack cases against a complete box below a prefix: real boot, supervisord, API, gateway,
agent host; not as root.
"""

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
from agentbox.host.doctor.attack_runner import run_attack, target_info
from agentbox.host.doctor.formats.report_data import report_data
from agentbox.plan.model import ApiPlan, ObservabilityPlan, Plan, Program, ReadySignal
from agentbox.plan.tables import LimitsPlan
from agentbox.sandbox.attacks.catalogue import CASES, CASES_BY_NAME
from support import tables
from support.api_box import SLOTS
from support.model_server import ModelServer
from support.ports import free_port
from support.prefix_box import PYTHON, PrefixBox, make_plan, once
from support.skills_box import install_skills

_TOKEN = "a-token-from-outside-0123456789"
_KEY = "MODEL_KEY"
_MODULES = (
    ("management-api", 10, "api", 11),
    ("gateway", 20, "gateway", 2),
    ("agent-host", 30, "agents", 8),
)
_READY_SECONDS = 90.0


def run_attacks(
    names: Iterable[str] = (),
    *,
    disabled_layer: str = "",
    limits: LimitsPlan | None = None,
    timeout: float = 10.0,
) -> Mapping[str, Any]:
    """Return the report of the cases (default: all) in the form of `plain`, with `asked`: requested
    paths of the model provider; `quiet`: benign denials in the journal; `classes`: classes and
    rules of other denials. `disabled_layer`: a layer of `disabled_layers` that the agents lack.
    `limits`: of the plan. `timeout`: as in TargetInfo.
    """
    with open_box(disabled_layer, limits=limits or tables.limits()) as target:
        lines = [CASES_BY_NAME[name] for name in names] or CASES
        facts = replace(target_info(target.plan, target.paths), patience=timeout)
        report = report_data(run_attack(target.client, facts, lines))
        model_paths = [request.path for request in target.models.requests]
        quiet_exits = [data["quiet"] for data in _events(target.client, "agent.exited")]
        classes = sorted(
            {(data["class"], data["rule"]) for data in _events(target.client, "policy.denied")}
        )
        return {**report, "asked": model_paths, "quiet": quiet_exits, "classes": classes}


def _events(client: BoxClient, kind: str) -> list[dict[str, Any]]:
    query = {"types": kind, "limit": 1000}
    return [event["data"] for event in client.call("read_events", query=query)["events"]]


@dataclass(frozen=True)
class AttackBox:
    """A ready box, an admin client, and the server of its model providers."""

    client: BoxClient
    plan: Plan
    paths: Paths
    models: ModelServer


@contextmanager
def open_box(disabled_layer: str = "", **changes: Any) -> Iterator[AttackBox]:
    """`changes` are fields of Plan."""
    with ModelServer() as models, PrefixBox() as prefix_box:
        plan = prefix_box.install(
            _plan(disabled_layer, **{"providers": _providers(models.url), **changes})
        )
        install_skills(prefix_box.paths, names=("git-commits",))
        prefix_box.start({"BOX_TOKEN": _TOKEN, _KEY: "operator-key-0123456789abcdef"})
        prefix_box.wait_for_event("BootstrapCompleted", _READY_SECONDS)
        with BoxClient(f"http://127.0.0.1:{plan.api.port}", token=_TOKEN, timeout=30) as client:
            deadline = time.monotonic() + _READY_SECONDS
            while (
                not _is_ready(client, complete=not disabled_layer) and time.monotonic() < deadline
            ):
                time.sleep(0.05)
            yield AttackBox(client, plan, prefix_box.paths, models)


def _plan(disabled_layer: str, **changes: Any) -> Plan:
    api = ApiPlan(
        port=free_port(),
        publish_address="127.0.0.1",
        auth="token",
        max_body=4 << 20,
        public_base="",
        token_env="BOX_TOKEN",
        session_idle_seconds=28_800,
        session_seconds=86_400,
    )
    observability = ObservabilityPlan(
        metrics_port=free_port(), publish_address="127.0.0.1", otlp_endpoint="", log_level="info"
    )
    base = make_plan(api.port, tuple(_programs(disabled_layer)))
    return replace(
        base,
        **{
            "api": api,
            "observability": observability,
            "slots": SLOTS,
            "secrets": ("BOX_TOKEN", _KEY),
            **changes,
        },
    )


def _is_ready(client: BoxClient, *, complete: bool) -> bool:
    """True if ready; if the canaries must report a disabled layer, if agents can start."""
    return (
        client.ready().ready if complete else client.health().adapters["orchestrator"].state == "ok"
    )


def _providers(url: str) -> dict[str, dict[str, Any]]:
    shared = {
        "enabled": True,
        "env_var": _KEY,
        "models": ["*"],
        "max_concurrent": 4,
        "timeout_seconds": 30,
    }
    return {
        kind: {**shared, "kind": kind, "base_url": url + path}
        for kind, path in (("openai", "/v1"), ("anthropic", ""))
    }


def _programs(disabled_layer: str) -> Iterator[Program]:
    yield once("bootstrap", 5, "agentbox.box.boot", env={"AGENTBOX_BOOTSTRAP_STAGE": "B"})
    for name, priority, module, seconds in _MODULES:
        argv: tuple[str, ...] = (PYTHON, "-I", "-m", f"agentbox.{module}")
        if disabled_layer and module == "agents":
            argv = (PYTHON, "-I", "-m", "support.disabled_layers", disabled_layer)
        yield Program(
            name=name,
            priority=priority,
            argv=argv,
            required=True,
            ready=ReadySignal(by="notify"),
            stop_seconds=seconds,
        )
    yield once("bootstrap-seal", 99, "agentbox.box.seal.main", required=False)


if __name__ == "__main__":
    print(json.dumps(run_attacks(sys.argv[1:]), indent=1))

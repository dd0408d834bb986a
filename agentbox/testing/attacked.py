"""The battery against a whole box below a prefix: real boot, supervisord, API, gateway, agent host; as no root."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from agentbox.attack.catalogue import BY_NAME, LINES
from agentbox.client import BoxClient
from agentbox.doctor.attacking import attack, facts_of
from agentbox.doctor.forms.plain import plain
from agentbox.plan.model import Api, Observability, Plan, Program, Ready
from agentbox.settings import Paths
from agentbox.testing.agent_host import LIMITS
from agentbox.testing.api_box import SLOTS
from agentbox.testing.ports import free_port
from agentbox.testing.prefix_box import PYTHON, PrefixBox, make_plan, once

_TOKEN = "a-token-from-outside-0123456789"
_MODULES = (("management-api", 10, "api", 11), ("gateway", 20, "gateway", 2), ("agent-host", 30, "agents", 8))
_READY_SECONDS = 30.0


def attacked(names: Iterable[str] = ()) -> Mapping[str, Any]:
    """The scorecard of those lines, none = all, as `plain` has it."""
    with box() as (client, plan, paths):
        lines = [BY_NAME[name] for name in names] or LINES
        return plain(attack(client, facts_of(plan, paths), lines))


@contextmanager
def box(**changes: Any) -> Iterator[tuple[BoxClient, Plan, Paths]]:
    """A ready box, and its client. `changes` are fields of Plan."""
    with PrefixBox() as running:
        plan = running.install(_plan(**changes))
        running.start({"BOX_TOKEN": _TOKEN})
        running.until_event("BootstrapCompleted")
        with BoxClient(f"http://127.0.0.1:{plan.api.port}", token=_TOKEN, timeout=30) as client:
            until = time.monotonic() + _READY_SECONDS
            while not client.ready().ready and time.monotonic() < until:
                time.sleep(0.05)
            yield client, plan, running.paths


def _plan(**changes: Any) -> Plan:
    api = Api(
        port=free_port(), publish_address="127.0.0.1", auth="token", max_body=4 << 20, public_base="", token_env="BOX_TOKEN",
    )  # fmt: skip
    watch = Observability(metrics_port=free_port(), publish_address="127.0.0.1", otlp_endpoint="", log_level="info")
    made = make_plan(api.port, tuple(_programs()))
    return replace(made, **{"api": api, "observability": watch, "slots": SLOTS, "limits": LIMITS, **changes})


def _programs() -> Iterator[Program]:
    yield once("bootstrap", 5, "agentbox.boot", env={"AGENTBOX_BOOTSTRAP_STAGE": "B"})
    for name, priority, module, seconds in _MODULES:
        argv = (PYTHON, "-I", "-m", f"agentbox.{module}")
        yield Program(
            name=name, priority=priority, argv=argv, required=True, ready=Ready(by="notify"), stop_seconds=seconds
        )
    yield once("bootstrap-seal", 99, "agentbox.boot.seal", required=False)


if __name__ == "__main__":
    print(json.dumps(attacked(sys.argv[1:]), indent=1))

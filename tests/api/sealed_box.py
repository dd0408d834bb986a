"""A sealed box below a prefix with the programs of a default box, and a client of it."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from raw import ask
from support import tables
from support.api_box import SLOTS
from support.ports import free_port
from support.prefix_box import PYTHON, PrefixBox, make_plan, once

from agentbox.client import BoxClient
from agentbox.plan.model import ApiPlan, ObservabilityPlan, Plan, Program, ReadySignal

TOKEN = "a-token-from-outside-0123456789"


def programs() -> tuple[Program, ...]:
    """The programs that a default box has."""
    modules = (
        ("management-api", 10, "api", 11),
        ("gateway", 20, "gateway", 2),
        ("agent-host", 30, "agents", 8),
    )
    ours = [
        Program(name=name, priority=priority, argv=(PYTHON, "-I", "-m", f"agentbox.{module}"), required=True,
                ready=ReadySignal(by="notify"), stop_seconds=seconds)
        for name, priority, module, seconds in modules
    ]  # fmt: skip
    return (
        once("bootstrap", 5, "agentbox.box.boot", env={"AGENTBOX_BOOTSTRAP_STAGE": "B"}),
        *ours,
        once("bootstrap-seal", 99, "agentbox.box.seal.main", required=False),
    )


def plan() -> Plan:
    """A small plan with real slots."""
    api = ApiPlan(
        port=free_port(), publish_address="127.0.0.1", auth="token", max_body=1 << 20, public_base="", token_env="BOX_TOKEN",
        session_idle_seconds=28_800, session_seconds=86_400,
    )  # fmt: skip
    watch = ObservabilityPlan(
        metrics_port=free_port(), publish_address="127.0.0.1", otlp_endpoint="", log_level="info"
    )
    return replace(
        make_plan(api.port, programs()),
        api=api,
        observability=watch,
        slots=SLOTS,
        limits=tables.limits(),
    )


class Sealed:
    """A running box and a client of it."""

    def __init__(self, box: PrefixBox, made: Plan) -> None:
        self.box, self.plan = box, made
        self.client = BoxClient(f"http://127.0.0.1:{made.api.port}", token=TOKEN, timeout=20)

    def start(self) -> None:
        self.box.start({"BOX_TOKEN": TOKEN})
        self.box.wait_for_event("BootstrapCompleted")
        self.box.wait_until(self.ready, 10, "ready")

    def ready(self) -> bool:
        """False while nothing listens, too."""
        with contextlib.suppress(OSError):
            return ask(self.plan.api.port, "GET /ready HTTP/1.1").status == 200
        return False

    def pid(self, program: str) -> int:
        return self.box.supervisor().states()[program].pid


@contextlib.contextmanager
def started(made: Plan) -> Iterator[Sealed]:
    with PrefixBox() as box:
        running = Sealed(box, box.install(made))
        running.start()
        yield running
        running.client.close()

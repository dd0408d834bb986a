"""The program session-host: which boxes run it, and what it may use. It parses what agents and
editors write, so it is confined as the program of a feature: its socket, its store, and a
connection to agent-host are all that it has.
"""

from collections.abc import Mapping
from typing import Any, Final

from agentbox.core.paths import Paths
from agentbox.plan.model import Program, ReadySignal, Ruleset, SlotPlan
from agentbox.plan.names import SESSION_HOST

_BOX: Final = Paths()

PROGRAM: Final = Program(
    name=SESSION_HOST,
    priority=40,
    argv=(str(_BOX.python), "-I", "-m", "agentbox.sessions"),
    required=False,
    ready=ReadySignal(by="state"),
    stop_seconds=1,
)
RULESET: Final = Ruleset(
    folders=(str(_BOX.session_host_run), str(_BOX.sessions)),
    reads=(str(_BOX.connections / SESSION_HOST),),
    sockets=True,
)


def is_needed(agents: Mapping[str, Any], slots: Mapping[str, SlotPlan]) -> bool:
    """Whether an enabled table of `agents` speaks ACP, and this box starts agents itself."""
    return slots["orchestrator"].use == "local-process" and any(
        table["enabled"] and table["protocol"] == "acp" for table in agents.values()
    )

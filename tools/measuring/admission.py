"""The way of a spec through admission, from a profile of real calls: how often a reader changes
files, how many files these are, and which calls go up.

An entry is a call from a file of the decision, one of `agents/`, into another file; the same call
in a loop counts once, and reading a property is no call. How the policy library is made inside is
another matter. A call goes up if it enters a higher layer of `.importlinter`, or leaves admission
for another part of agent-host.
"""

import dis
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple

from agentbox.agents.admission.admit import Requester, admit
from agentbox.agents.admission.draft import AdmissionInputs, HostUsage, Parent
from agentbox.contracts.orchestrator import AgentSpec, Constraint
from agentbox.core.paths import Paths
from agentbox.policy.rights.authorization import PRINCIPAL
from support.agent_family import MANIFEST
from support.host_configs import host_config
from support.plans import plan_of

from measuring.sources import ROOT

_ADMISSION: Final = "agents/admission/"
_DATA: Final = frozenset({"agents/config.py"})  # of agent-host, below admission
_GIB: Final = 1 << 30


class Call(NamedTuple):
    """One function calls another in another file; paths are below `agentbox/`."""

    caller_file: str
    caller: str
    file: str
    function: str


def spawns() -> dict[str, Callable[[], Any]]:
    """The admission of a program without a table, of an agent of the manifest, and of a child with
    a constraint, which goes through every step."""
    plan = plan_of(MANIFEST)
    config = host_config(
        Paths(Path("/nonexistent")),
        limits=plan.limits,
        agents=plan.agents,
        policies=plan.policies,
        egress_allow=plan.reach.allow,
    )
    usage = HostUsage(open_files=10_000, disk_free=_GIB, disk_size=_GIB)
    operator = Requester(principal="urn:operator", request_id="1")
    inputs = AdmissionInputs(config=config, now=time.time(), usage=usage)
    lead = admit(AgentSpec(name="lead", agent="lead"), operator, inputs)
    parent = Parent(
        agent_id="lead",
        name="lead",
        state="running",
        over=False,
        depth=0,
        limits=lead.limits,
        grant_set=lead.grant_set,
        session_id="lead",
        trace_id="0" * 32,
    )
    ad_hoc, named = AgentSpec(name="true", argv=("true",)), AgentSpec(name="lead", agent="lead")
    bounds = (Constraint(scope="tool", expires_s=60.0),)
    child = AgentSpec(name="hand", agent="hand", parent_id="lead", constraints=bounds)
    child_inputs = AdmissionInputs(config=config, now=inputs.now, usage=usage, parent=parent)
    itself = Requester(principal=f"{PRINCIPAL}lead", request_id="2")
    return {
        "ad hoc": lambda: admit(ad_hoc, operator, inputs),
        "of the manifest": lambda: admit(named, operator, inputs),
        "child with a constraint": lambda: admit(child, itself, child_inputs),
    }


def measure(run: Callable[[], Any]) -> dict[str, int]:
    """Counts of the second run: the first one fills what is read once a process."""
    run()
    calls = profile(run)
    return {
        "entries": len(calls),
        "files": len({call.file for call in calls}),
        "upward calls": sum(map(goes_up, calls)),
    }


def profile(run: Callable[[], Any]) -> list[Call]:
    """The entries of one run, in order, each once; the call of `run` itself is the first."""
    calls: dict[Call, None] = {}

    def observe(frame: FrameType, event: str, _argument: Any) -> None:
        if event != "call" or not (file := _file(frame.f_code)):
            return
        caller = frame.f_back
        while caller is not None and not _file(caller.f_code):
            caller = caller.f_back
        outer = _file(caller.f_code) if caller else ""
        if calls and (not outer.startswith("agents/") or _reads(caller)):
            return
        if file != outer:
            name = caller.f_code.co_qualname if caller else ""
            calls[Call(outer, name, file, frame.f_code.co_qualname)] = None

    sys.setprofile(observe)
    try:
        run()
    finally:
        sys.setprofile(None)
    return list(calls)


def _file(code: CodeType) -> str:
    """Below `agentbox/`; "" for other code, such as the methods of a dataclass."""
    _, found, below = code.co_filename.partition(f"{ROOT}/agentbox/")
    return below if found else ""


def _reads(caller: FrameType | None) -> bool:
    """Whether it is about to get an attribute rather than to call a function."""
    return caller is not None and dis.opname[caller.f_code.co_code[caller.f_lasti]] == "LOAD_ATTR"


def goes_up(call: Call) -> bool:
    """Whether it enters what stands above its caller."""
    if not call.caller_file:
        return False
    layers = _layers()
    caller, callee = (file.split("/")[0] for file in (call.caller_file, call.file))
    leaves = call.file.startswith("agents/") and not call.file.startswith(_ADMISSION)
    return layers[callee] < layers[caller] or (
        leaves and call.caller_file.startswith(_ADMISSION) and call.file not in _DATA
    )


def _layers() -> dict[str, int]:
    """Packages by layer, 0 at the top."""
    text = (ROOT / ".importlinter").read_text(encoding="utf-8")
    rows = text.split("layers =\n")[1].split("\n\n")[0].splitlines()
    return {name.strip(): rank for rank, row in enumerate(rows) for name in row.split("|")}

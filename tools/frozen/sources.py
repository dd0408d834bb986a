"""Where each kind of fact lives in agentbox: the only file here that imports it, so a move of
modules changes this file alone.

Nothing is copied. A row names the class, the table or the module from which other files read
members and names. Where two tables say the same, the one that the wire uses is named here.
"""

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import agentbox
from agentbox.adapters import errors as problems, methods as slot_methods, observe, registry, wire
from agentbox.adapters.base import Deps, Health, SlotConfig
from agentbox.adapters.beads.local_sqlite import LocalSqliteBeads
from agentbox.adapters.beads.pg.schema import MIGRATIONS as BEADS_PG
from agentbox.adapters.deadline import Deadline
from agentbox.adapters.events.contract import Event, NewEvent
from agentbox.adapters.events.delivery.ledger import Ledger as DeliveryLedger
from agentbox.adapters.events.local_jsonl import LocalJsonlEvents
from agentbox.adapters.memory.local_sqlite import LocalSqliteMemory
from agentbox.adapters.memory.pg.schema import MIGRATIONS as MEMORY_PG
from agentbox.adapters.memory.reembed import Report as ReembedReport
from agentbox.adapters.metrics import Metrics
from agentbox.adapters.orchestrator import over_rpc, rpc, rpc_client
from agentbox.adapters.orchestrator.canaries import CanaryReport
from agentbox.adapters.orchestrator.contract import (
    AgentHandle,
    AgentSpec,
    ExitRecord,
    Limits,
    RunResult,
    StreamItem,
)
from agentbox.adapters.orchestrator.denials import DenialCounts
from agentbox.adapters.orchestrator.record import RecordLine
from agentbox.adapters.pods.local_fs import LocalFsPods
from agentbox.agents import denials, flows, life, revoking, service, session, shown, standings
from agentbox.agents.approvals.request import Request as Approval
from agentbox.agents.bridge import forward
from agentbox.agents.config import HostConfig
from agentbox.agents.denial_classes import classes as denial_classes
from agentbox.agents.entry import Entry
from agentbox.agents.methods import METHODS as AGENT_RPC
from agentbox.agents.review import autorun, gitdir, listing
from agentbox.agents.review.change import Review
from agentbox.agents.review.journal import Journal as CommitJournal
from agentbox.agents.states.state import State
from agentbox.agents.store import Store as AgentStore
from agentbox.api import endpoints, tasks, tracing
from agentbox.api.answers import NAMES as HTTP_RECORDS
from agentbox.api.boot_events import type_of as journal_type
from agentbox.api.box_metrics import BoxMetrics
from agentbox.api.http_metrics import HttpMetrics
from agentbox.api.openapi import document as openapi
from agentbox.api.tasks.spool import Entry as SpoolEntry
from agentbox.api.tokens import NamedTokens, NewToken
from agentbox.attack.catalogue import LINES as ATTACKS
from agentbox.attack.line import LAYERS as ATTACK_LAYERS, Facts as AttackFacts
from agentbox.boot import main as boot, runner, seal
from agentbox.boot.explain import Explanation
from agentbox.boot.steps import p0_begin
from agentbox.cli import commands, manifest_index, output
from agentbox.cli.effects import Moved
from agentbox.cli.main import cli
from agentbox.cli.manifest_diff import Change as ManifestChange
from agentbox.cli.resolved import Resolved
from agentbox.cli.suites.report import Case as TestCase
from agentbox.client import ctl
from agentbox.client.records import Wire
from agentbox.doctor.catalogue import CHECKS
from agentbox.doctor.forms import plain as doctor_json
from agentbox.doctor.row import STATES as CHECK_STATES, Row as CheckRow
from agentbox.engine import daemon
from agentbox.engine.state import BoxRecord, BuildStamp
from agentbox.errors import ExitCode
from agentbox.features import load_features
from agentbox.gateway import app as gateway_app
from agentbox.gateway.door import errors as door_errors, hello, jsonrpc, specials, tools
from agentbox.gateway.llm import app as models, gemini
from agentbox.gateway.llm.gauges import Gauges
from agentbox.gateway.llm.ledger import Ledger as BudgetLedger
from agentbox.gateway.mcp import VERSIONS as MCP_VERSIONS, name_of as mcp_name
from agentbox.gateway.proxy import answers as proxy_answers
from agentbox.grants import holding, spent
from agentbox.grants.holding import Holding
from agentbox.grants.standing import Standing
from agentbox.image.archive import BuildResult
from agentbox.image.tree.entry import Entry as LayerEntry
from agentbox.image.verify.steps import Step as VerifyStep
from agentbox.limits.gauge import Breach
from agentbox.limits.registry import LIMITS
from agentbox.lock import npm_pack
from agentbox.lock.changes import Change as LockChange
from agentbox.lock.fetch import Fetched
from agentbox.lockfile.inputs import Inputs as LockInputs
from agentbox.lockfile.model import Lock
from agentbox.manifest.bundle import properties as manifest_schema
from agentbox.manifest.findings import Finding
from agentbox.manifest.key_table import keys as manifest_keys
from agentbox.manifest.profiles import profiles
from agentbox.mesh.metrics import ClientMetrics, HostMetrics
from agentbox.mesh.outbox import Outbox
from agentbox.mesh.outbox_metrics import watch as outbox_metrics
from agentbox.mesh.records import MeshSession
from agentbox.mesh.session_store import SessionStore
from agentbox.plan.model import Plan, Probe
from agentbox.plan.names import GATEWAY
from agentbox.probes.base import ProbeResult
from agentbox.probes.posture import capabilities, promised
from agentbox.probes.requirement import Requirement
from agentbox.render import build_record
from agentbox.routes.table import ROUTES, SCOPES
from agentbox.rules._retired import RETIRED
from agentbox.rules.discovery import discover as rules
from agentbox.rules.engine import Report
from agentbox.sandbox import (
    client as launcher_client,
    control,
    disk,
    launcher,
    leader,
    newborn,
    reaper,
    walker,
)
from agentbox.sandbox.canary import RULES as CANARIES
from agentbox.sandbox.spec import Denials, Ended, Launch, Started
from agentbox.sandbox.watchdog import Bounds
from agentbox.settings import Paths
from agentbox.supervision import sentinel
from agentbox.supervision.boot_record import BootRecord, Posture, Previous
from agentbox.supervision.events import EVENTS as BOOT_EVENTS, BootLog
from agentbox.supervision.notify import Note
from agentbox.supervision.timeline import PastBoot, Timeline

_NOT_PRODUCT: Final = ("testing",)  # packages that no image and no host needs
_OF_OTHERS: Final = (
    autorun,
    gemini,
    gitdir,
    npm_pack,
)  # names in these are Git's, npm's, a vendor's


def _modules(package: ModuleType) -> Iterator[ModuleType]:
    """Every module of the product below a package but its programs, imported."""
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if is_product(found.name) and not found.name.endswith("__main__"):
            yield importlib.import_module(found.name)


def is_product(module: str) -> bool:
    """Whether a module is one of the product, by its name."""
    top, _, below = module.partition(".")
    return top == agentbox.__name__ and below.partition(".")[0] not in _NOT_PRODUCT


def product_files() -> tuple[Path, ...]:
    """Every file of the product, programs too, but those that are about names of other programs."""
    root = Path(agentbox.__path__[0])
    found = (
        one for one in root.rglob("*.py") if one.relative_to(root).parts[0] not in _NOT_PRODUCT
    )
    return tuple(sorted({*found} - {Path(module.__file__ or "") for module in _OF_OTHERS}))


MODULES: Final = tuple(
    _modules(agentbox)
)  # the roots below know their subclasses once all are imported
RECORDS: Final[tuple[type, ...]] = (wire.Record, Wire)
CLIENT_RECORD: Final[type] = Wire
PROBLEM: Final[type] = problems.AdapterError
REQUIREMENT: Final[type] = Requirement

LINUX_CAPABILITIES: Final = frozenset(capabilities.of_mask((1 << 64) - 1).split(","))
AGENT_HOST_CAPABILITIES: Final = frozenset(service.CAPABILITIES)
EVENT_MEMBERS: Final = frozenset(one.name for one in fields(NewEvent))
EVENT_FAMILIES: Final = (
    *(
        "agent",
        "approval",
        "bead",
        "boot",
        "journal",
        "limit",
        "mesh",
        "policy",
        "review",
        "sandbox",
        "slot",
        "state",
    ),
    "token",
)  # the first words of types of events
JSON_TYPES: Final[Mapping[Any, str]] = {
    wire.JsonObj: "object",
    wire.JsonValue: "any",
    wire.Scalar: "scalar",
}

# Records that leave a process other than as a body of HTTP: where each goes.
PLACES: Final[Mapping[str, Any]] = {
    "agents.db agents.row.holding": Holding,
    "agents.db approvals.row": Approval,
    "agents.db record": RecordLine,
    "agents.db states": State,
    "agent-host RPC authorization": Standing,
    "agent-host RPC canaries": CanaryReport,
    "agent-host RPC denials": DenialCounts,
    "agent-host RPC exit": ExitRecord,
    "agent-host RPC handle": AgentHandle,
    "agent-host RPC run": RunResult,
    "agent-host RPC stream": StreamItem,
    "attack facts": AttackFacts,
    "agentbox.lock inputs": LockInputs,
    "cli build": BuildResult,
    "cli fetch": Fetched,
    "cli verify step": VerifyStep,
    "cli memory reembed": ReembedReport,
    "cli config diff change": ManifestChange,
    "cli config diff effect": Moved,
    "cli boot explain": Explanation,
    "cli boot history": PastBoot,
    "cli config explain key": Resolved,
    "cli lock change": LockChange,
    "agentbox.lock": Lock,
    "file boot.json": BootRecord,
    "file boot/records": Timeline,
    "file bootstrap.done": sentinel.Sentinel,
    "file files of a layer": LayerEntry,
    "file journal": Event,
    "file models.json counts": Gauges,
    "file models.json spent": spent.Spent,
    "plan.json": Plan,
    "file probes.json": Probe,
    "file results.json case": TestCase,
    "file ready.d": Note,
    "file review/commit.json": CommitJournal,
    "file review/review.json": Review,
    "file state/builds.json": BuildStamp,
    "file state/record.json": BoxRecord,
    "file tasks": SpoolEntry,
    "launcher breach": Breach,
    "launcher denied": Denials,
    "launcher ended": Ended,
    "launcher launch": Launch,
    "launcher limits": Bounds,
    "launcher started": Started,
    "probe result": ProbeResult,
    "rule report": Report,
    "sessions.db sessions.document": MeshSession,
    "slot health": Health,
}

# Members that are written by hand: a document or message -> the code that writes or reads it.
WRITTEN: Final[Mapping[str, tuple[Any, ...]]] = {
    "agent API": (jsonrpc, door_errors),
    "agent API hello": (hello,),
    "agent API tools of another shape": (specials,),
    "agent budgets in use": (spent,),
    "agent-host RPC": (rpc, rpc_client, over_rpc, session, flows),
    "agent-host RPC by a bridge": (forward,),
    "agent-host RPC standings": (standings,),
    "agent as shown": (shown, holding),
    "agent stream state": (life,),
    "agentbox-ctl": (ctl,),
    "cli output": (output, *_modules(commands)),
    "doctor row": (CheckRow.to_wire, doctor_json),
    "file boot events": (BootLog,),
    "file build.json": (build_record,),
    "file dockerd.json": (daemon,),
    "file manifests.json": (manifest_index,),
    "file models.json": (models.LlmApp.state,),
    "file phases.jsonl": (runner,),
    "file review/start.jsonl": (listing,),
    "finding": (Finding.to_json,),
    "gateway": (gateway_app,),
    "grant": (revoking,),
    "launcher": (launcher_client, launcher, leader, control, newborn),
    "monitor": (walker, disk),
    "posture control": (promised,),
    "proxy": (proxy_answers,),
    "reaper": (reaper,),
    "rule report": (Report.to_json,),
    "HTTP answers of another shape": (*_modules(endpoints),),
    "task": (*_modules(tasks),),
    "trace spans": (observe, tracing),
}
POSTGRES: Final[Mapping[str, Any]] = {"beads": BEADS_PG, "memory": MEMORY_PG}
PHASES: Final = (
    (p0_begin.PHASE, "A"),
    *((one.id, "A") for one in boot.PHASES_A),
    *((one.id, "B") for one in boot.PHASES_B),
    (seal.PHASE, ""),
)

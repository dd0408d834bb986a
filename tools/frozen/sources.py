"""Where each kind of fact lives in agentbox; the only file here that imports it. A row names the
class, table or module that other files read; of two that say the same, the one of the wire."""

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import agentbox
from agentbox.adapters.beads.postgres.schema import MIGRATIONS as BEADS_PG
from agentbox.adapters.events.delivery.cursor import DeliveryCursor as DeliveryLedger
from agentbox.adapters.memory.postgres.schema import MIGRATIONS as MEMORY_PG
from agentbox.adapters.memory.reembed import ReembedReport as ReembedReport
from agentbox.adapters.orchestrator import caller_params, over_rpc
from agentbox.adapters.runtime import metrics, observe, registry
from agentbox.adapters.runtime.adapter import Deps, Health, SlotConfig, SlotName
from agentbox.agents.approvals.request import ApprovalRequest as Approval
from agentbox.agents.authorization import authorization_registry, revoker
from agentbox.agents.bridge import forward
from agentbox.agents.config import HostConfig
from agentbox.agents.registry import agent_info as shown, denials
from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.registry.denial_classes import load_classes as denial_classes
from agentbox.agents.registry.store import AgentStore as AgentStore
from agentbox.agents.review import autorun_patterns, baseline, git_dir as gitdir
from agentbox.agents.review.change import Review
from agentbox.agents.review.journal import CommitJournal as CommitJournal
from agentbox.agents.rpc import service
from agentbox.agents.rpc.methods import HAND_WRITTEN as AGENT_RPC, METHODS as AGENT_RPC_METHODS
from agentbox.agents.runs import agent_runner, output as agent_output
from agentbox.agents.states.state import StoredState
from agentbox.api import endpoints, tasks, tracing
from agentbox.api.auth.access_store import AccessStore
from agentbox.api.background.boot_events import event_type as journal_type
from agentbox.api.endpoints import cloudevents, pod_containers, sockets
from agentbox.api.metrics.box_metrics import BoxMetrics
from agentbox.api.metrics.http_metrics import HttpMetrics
from agentbox.api.metrics.operator_metrics import OperatorMetrics
from agentbox.api.openapi import document as openapi
from agentbox.api.tasks.spool import SpoolEntry as SpoolEntry
from agentbox.box.boot import main as boot, runner
from agentbox.box.boot.steps import p0_begin
from agentbox.box.posture import promised
from agentbox.box.probes.base import ProbeResult
from agentbox.box.readiness.requirement import Requirement
from agentbox.box.seal import main as seal
from agentbox.box.seal.explain import Explanation
from agentbox.box.supervision import sentinel
from agentbox.box.supervision.boot_event_log import EVENTS as BOOT_EVENTS, BootEventLog
from agentbox.box.supervision.boot_record import BootRecord, Posture, PreviousBoot
from agentbox.box.supervision.boot_timeline import BootTimeline, PastBoot
from agentbox.box.supervision.notify import ReadinessNote
from agentbox.client import ctl
from agentbox.contracts import slot_operations as slot_methods, tasks as task_records
from agentbox.contracts.agent_host import rpc as operation_rpc
from agentbox.contracts.agent_host.canaries import CanaryReport
from agentbox.contracts.agent_host.denials import DenialCounts
from agentbox.contracts.agent_host.lifecycle_record import LifecycleRecord
from agentbox.contracts.events import Event, NewEvent
from agentbox.contracts.mesh import MeshSession
from agentbox.contracts.operations.agent_host import AGENT_HOST as AGENT_HOST
from agentbox.contracts.operations.agents import AGENTS as AGENTS
from agentbox.contracts.orchestrator import (
    AgentHandle,
    AgentSpec,
    ExitRecord,
    Limits,
    RunResult,
    StreamItem,
)
from agentbox.contracts.routes.records_by_name import RECORDS_BY_NAME as HTTP_RECORDS
from agentbox.contracts.routes.registry import ROUTES, SCOPES
from agentbox.core import slot_errors as problems
from agentbox.core.deadline import Deadline
from agentbox.core.errors import ExitCode
from agentbox.core.linux import capabilities
from agentbox.core.paths import Paths
from agentbox.core.records import wire
from agentbox.core.rpc import client as rpc_client, messages as rpc, session, subscriptions
from agentbox.gateway import app as gateway_app
from agentbox.gateway.agent_api import (
    custom_tools as specials,
    errors as agent_api_errors,
    hello,
    jsonrpc,
    tools,
)
from agentbox.gateway.agent_api.mcp import VERSIONS as MCP_VERSIONS, mcp_name as mcp_name
from agentbox.gateway.llm import app as models
from agentbox.gateway.llm.gateway_counters import GatewayCounters
from agentbox.gateway.llm.ledger import BudgetLedger as BudgetLedger
from agentbox.gateway.llm.vendors import gemini
from agentbox.gateway.proxy import refusals as proxy_answers
from agentbox.host.cli import commands, manifest_cache, output
from agentbox.host.cli.main import cli
from agentbox.host.cli.manifest_diff import KeyChange as ManifestChange
from agentbox.host.cli.manifest_effects import ChangedItem
from agentbox.host.cli.resolved_keys import ResolvedKey
from agentbox.host.cli.suites.report import Case as TestCase
from agentbox.host.doctor.catalogue import CHECKS
from agentbox.host.doctor.check_result import STATES as CHECK_STATES, CheckResult as CheckRow
from agentbox.host.doctor.formats import report_data as doctor_json
from agentbox.host.engines.docker import daemon
from agentbox.host.engines.state import BoxRecord, BuildStamp
from agentbox.host.generations.record import Generation
from agentbox.host.image.archive import BuildResult
from agentbox.host.image.tree.entry import TreeEntry as LayerEntry
from agentbox.host.image.verify.steps import VerifyStep as VerifyStep
from agentbox.host.packages.changes import PackageChange as LockChange
from agentbox.host.packages.npm import npm_pack
from agentbox.host.packages.store.fetch import FetchResult
from agentbox.manifest.features.loader import load_features
from agentbox.manifest.findings import Finding
from agentbox.manifest.keys import keys as manifest_keys
from agentbox.manifest.rules._retired import RETIRED
from agentbox.manifest.rules.discovery import discover as rules
from agentbox.manifest.rules.engine import ValidationReport
from agentbox.manifest.schema.generator import properties as manifest_schema
from agentbox.manifest.slot_options import options_class as options_class
from agentbox.mesh.host.session_store import SessionStore
from agentbox.mesh.metrics import ClientMetrics, HostMetrics
from agentbox.mesh.outbox.metrics import register_metrics as outbox_metrics
from agentbox.mesh.outbox.outbox import Outbox
from agentbox.plan.lockfile.inputs import LockInputs as LockInputs
from agentbox.plan.lockfile.model import Lock
from agentbox.plan.model import Plan, Probe
from agentbox.plan.names import GATEWAY
from agentbox.plan.render import build_record
from agentbox.policy.limits.gauge import Breach
from agentbox.policy.limits.registry import LIMITS
from agentbox.policy.profiles import profiles
from agentbox.policy.rights import budget_usage, grant_set
from agentbox.policy.rights.authorization import Authorization
from agentbox.policy.rights.grant_set import GrantSet
from agentbox.sandbox.attacks.case import LAYERS as ATTACK_LAYERS, TargetInfo as AttackFacts
from agentbox.sandbox.attacks.catalogue import CASES as ATTACKS
from agentbox.sandbox.canary.canary import RULES as CANARIES
from agentbox.sandbox.launcher import (
    agent_process as leader,
    client as launcher_client,
    control,
    launcher,
    pending_process,
    programs,
    reaper,
)
from agentbox.sandbox.monitor import disk_monitor, disk_scanner
from agentbox.sandbox.monitor.watchdog import TreeLimits
from agentbox.sandbox.spec import Launch, ProcessEnded, ProcessStarted, SyscallDenials

_OF_OTHERS: Final = (autorun_patterns, gemini, gitdir, npm_pack)  # Git's names, npm's, a vendor's
_HELPERS: Final = (cloudevents, pod_containers, sockets)  # among the endpoints, and none themselves


def _modules(package: ModuleType) -> Iterator[ModuleType]:
    """Every module of the product below a package but its programs, imported."""
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if is_product(found.name) and not found.name.endswith("__main__"):
            yield importlib.import_module(found.name)


def is_product(module: str) -> bool:
    """Whether a module is one of the product, by its name."""
    return module.partition(".")[0] == agentbox.__name__


def product_files() -> tuple[Path, ...]:
    """Every file of the product, programs too, but those that are about names of other programs."""
    root = Path(agentbox.__path__[0])
    return tuple(
        sorted({*root.rglob("*.py")} - {Path(module.__file__ or "") for module in _OF_OTHERS})
    )


MODULES: Final = tuple(_modules(agentbox))  # the roots below then know all their subclasses
RECORDS: Final[tuple[type, ...]] = (wire.Record,)
PROBLEM: Final[type] = problems.AdapterError
REQUIREMENT: Final[type] = Requirement

LINUX_CAPABILITIES: Final = frozenset(capabilities.format_mask((1 << 64) - 1).split(","))
AGENT_HOST_CAPABILITIES: Final = frozenset(service.CAPABILITIES)
EVENT_MEMBERS: Final = frozenset(one.name for one in fields(NewEvent))
EVENT_FAMILIES: Final = (
    *("agent", "approval", "bead", "boot", "journal", "limit", "mesh", "policy", "review"),
    *("sandbox", "slot", "state", "token"),
)  # the first words of types of events
JSON_TYPES: Final[Mapping[Any, str]] = {
    wire.JsonObj: "object",
    wire.JsonValue: "any",
    wire.Scalar: "scalar",
}

# Records that leave a process other than as a body of HTTP: where each goes.
PLACES: Final[Mapping[str, Any]] = {
    "agents.db agents.row.holding": GrantSet,
    "agents.db approvals.row": Approval,
    "agents.db record": LifecycleRecord,
    "agents.db states": StoredState,
    "agent-host RPC authorization": Authorization,
    "agent-host RPC canaries": CanaryReport,
    "agent-host RPC denials": DenialCounts,
    "agent-host RPC exit": ExitRecord,
    "agent-host RPC handle": AgentHandle,
    "agent-host RPC run": RunResult,
    "agent-host RPC stream": StreamItem,
    "attack facts": AttackFacts,
    "agentbox.lock inputs": LockInputs,
    "cli build": BuildResult,
    "cli fetch": FetchResult,
    "cli verify step": VerifyStep,
    "cli memory reembed": ReembedReport,
    "cli config diff change": ManifestChange,
    "cli config diff effect": ChangedItem,
    "cli boot explain": Explanation,
    "cli boot history": PastBoot,
    "cli config explain key": ResolvedKey,
    "cli lock change": LockChange,
    "agentbox.lock": Lock,
    "file boot.json": BootRecord,
    "file boot/records": BootTimeline,
    "file bootstrap.done": sentinel.Sentinel,
    "file files of a layer": LayerEntry,
    "file journal": Event,
    "file models.json counts": GatewayCounters,
    "file models.json spent": budget_usage.BudgetUsage,
    "plan.json": Plan,
    "file probes.json": Probe,
    "file results.json case": TestCase,
    "file ready.d": ReadinessNote,
    "file review/commit.json": CommitJournal,
    "file review/review.json": Review,
    "file review/start.jsonl: git": baseline.GitStart,
    "file state/builds.json": BuildStamp,
    "file state/generations/index.json": Generation,
    "file state/record.json": BoxRecord,
    "file tasks": SpoolEntry,
    "launcher breach": Breach,
    "launcher denied": SyscallDenials,
    "launcher ended": ProcessEnded,
    "launcher launch": Launch,
    "launcher limits": TreeLimits,
    "launcher started": ProcessStarted,
    "probe result": ProbeResult,
    "rule report": ValidationReport,
    "sessions.db sessions.document": MeshSession,
    "slot health": Health,
}

# Members that are written by hand: a document or message -> the code that writes or reads it.
WRITTEN: Final[Mapping[str, tuple[Any, ...]]] = {
    "agent API": (jsonrpc, agent_api_errors),
    "agent API hello": (hello,),
    "agent API tools of another shape": (specials,),
    "agent budgets in use": (budget_usage,),
    "agent-host RPC": (
        rpc,
        rpc_client,
        caller_params.current_caller,
        over_rpc,
        session,
        subscriptions,
    ),
    "agent-host RPC by a bridge": (forward,),
    "agent-host RPC standings": (authorization_registry,),
    "agent as shown": (shown, grant_set),
    "agent stream state": (agent_runner, agent_output),
    "agentbox-ctl": (ctl,),
    "cli output": (output, *_modules(commands)),
    "doctor row": (CheckRow.to_wire, doctor_json),
    "file boot events": (BootEventLog,),
    "file build.json": (build_record,),
    "file dockerd.json": (daemon,),
    "file manifests.json": (manifest_cache,),
    "file models.json": (models.LlmApp.state,),
    "file phases.jsonl": (runner,),
    "file review/start.jsonl": (baseline,),
    "finding": (Finding.to_json,),
    "gateway": (gateway_app,),
    "grant": (revoker,),
    "launcher": (launcher_client, launcher, leader, control, pending_process),
    "monitor": (disk_scanner, disk_monitor),
    "posture control": (promised,),
    "proxy": (proxy_answers,),
    "reaper": (reaper, pending_process, programs),
    "rule report": (ValidationReport.to_json,),
    "HTTP answers of another shape": tuple({*_modules(endpoints)} - {*_HELPERS}),
    "task": (task_records, *_modules(tasks)),
    "trace spans": (observe, tracing),
}
POSTGRES: Final[Mapping[str, Any]] = {"beads": BEADS_PG, "memory": MEMORY_PG}
PHASES: Final = (
    (p0_begin.PHASE, "A"),
    *((one.id, "A") for one in boot.PHASES_A),
    *((one.id, "B") for one in boot.PHASES_B),
    (seal.PHASE, ""),
)

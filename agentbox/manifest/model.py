"""The manifest with its defaults: frozen records, one per table. Standard library only."""

import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Annotated, Any, TypeVar, get_args, get_origin

from agentbox.core.frozen import frozen
from agentbox.manifest.declarations.key import entries, table
from agentbox.manifest.tables.acp import AcpTable
from agentbox.manifest.tables.agents import AgentTable
from agentbox.manifest.tables.api import ApiTable
from agentbox.manifest.tables.backup import BackupTable
from agentbox.manifest.tables.cost import CostTable
from agentbox.manifest.tables.desktop import DesktopTable
from agentbox.manifest.tables.egress import EgressTable
from agentbox.manifest.tables.gpu import GpuTable
from agentbox.manifest.tables.image import ImageTable
from agentbox.manifest.tables.limits import LimitsTable
from agentbox.manifest.tables.mcp import McpTable
from agentbox.manifest.tables.mesh import MeshTable
from agentbox.manifest.tables.meta import MetaTable
from agentbox.manifest.tables.network import NetworkTable
from agentbox.manifest.tables.observability import ObservabilityTable
from agentbox.manifest.tables.policies import PolicyTable
from agentbox.manifest.tables.privacy import PrivacyTable
from agentbox.manifest.tables.providers import ProviderTable
from agentbox.manifest.tables.resources import ResourcesTable
from agentbox.manifest.tables.sandboxes import SandboxesTable
from agentbox.manifest.tables.security import SecurityTable
from agentbox.manifest.tables.skills import SkillsTable
from agentbox.manifest.tables.slots import AdaptersTable
from agentbox.manifest.tables.sovereign_mesh import SovereignMeshTable
from agentbox.manifest.tables.state import StateTable
from agentbox.manifest.tables.toolchains import ToolchainsTable
from agentbox.manifest.tables.upgrade import UpgradeTable
from agentbox.manifest.types import Size

T = TypeVar("T")


@frozen
class Model:
    """All tables of a manifest."""

    meta: MetaTable = table(MetaTable)
    image: ImageTable = table(ImageTable)
    resources: ResourcesTable = table(ResourcesTable)
    api: ApiTable = table(ApiTable)
    observability: ObservabilityTable = table(ObservabilityTable)
    backup: BackupTable = table(BackupTable)
    upgrade: UpgradeTable = table(UpgradeTable)
    adapters: AdaptersTable = table(AdaptersTable)
    mesh: MeshTable = table(MeshTable)
    sovereign_mesh: SovereignMeshTable = table(SovereignMeshTable)
    providers: Mapping[str, ProviderTable] = entries(
        "Where models are, by name. Only the gateway reads the credentials."
    )
    cost: CostTable = table(CostTable)
    privacy: PrivacyTable = table(PrivacyTable)
    desktop: DesktopTable = table(DesktopTable)
    gpu: GpuTable = table(GpuTable)
    toolchains: ToolchainsTable = table(ToolchainsTable)
    skills: SkillsTable = table(SkillsTable)
    agents: Mapping[str, AgentTable] = entries("The agents that this box may start, by name.")
    mcp: McpTable = table(McpTable)
    state: StateTable = table(StateTable)
    sandboxes: SandboxesTable = table(SandboxesTable)
    acp: AcpTable = table(AcpTable)
    limits: LimitsTable = table(LimitsTable)
    policies: Mapping[str, PolicyTable] = entries("What agents may do, by name.")
    egress: EgressTable = table(EgressTable)
    network: NetworkTable = table(NetworkTable)
    security: SecurityTable = table(SecurityTable)


def build(written: Mapping[str, Any]) -> Model:
    """The effective model of a manifest. `written` must be valid; anything else is a bug."""
    return build_record(Model, _dependent_defaults(written))


def build_record(kind: type[T], values: Mapping[str, Any]) -> T:
    """A record of `kind` from plain data; absent keys have their default."""
    hints = hints_of(kind)  # type: ignore[arg-type]
    return kind(**{name: convert(hints[name], value) for name, value in values.items()})


@cache
def hints_of(kind: type[object]) -> dict[str, Any]:
    """The annotations of a record, including `Annotated`."""
    return typing.get_type_hints(kind, include_extras=True)


def plain(value: Any) -> Any:
    """A model value as TOML data: dicts, lists and scalars."""
    if is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, Size) else value


def convert(hint: Any, value: Any) -> Any:
    """Plain, valid data as a model value, by the annotation of its key."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    origin = get_origin(hint)
    if origin is tuple:
        return tuple(convert(get_args(hint)[0], item) for item in value)
    if origin is Mapping:
        return {name: convert(get_args(hint)[1], item) for name, item in value.items()}
    if isinstance(hint, type) and is_dataclass(hint):
        return build_record(hint, value)
    if hint is Size or hint is float:
        return hint(value)
    return value


def _dependent_defaults(written: Mapping[str, Any]) -> dict[str, Any]:
    """Defaults that depend on other keys: a slot that is off is not required; a token file replaces
    the token variable; agents and MCP servers inherit [limits].
    """
    result = dict(written)
    if "token_file" in (mesh := result.get("mesh", {})):
        result["mesh"] = {"token_env": "", **mesh}
    adapters = result.get("adapters", {})
    off = {
        slot: {**table, "required": False}
        for slot, table in adapters.items()
        if table.get("use") == "off"
    }
    if off:
        result["adapters"] = {**adapters, **off}
    if agents := result.get("agents"):
        limits = result.get("limits", {})
        result["agents"] = {
            name: {**agent, "limits": {**limits, **agent.get("limits", {})}}
            for name, agent in agents.items()
        }
    if servers := (mcp := result.get("mcp", {})).get("servers"):
        limits = result.get("limits", {})
        inherited = {
            name: {**server, "limits": {**limits, **server.get("limits", {})}}
            for name, server in servers.items()
        }
        result["mcp"] = {**mcp, "servers": inherited}
    return result

"""The manifest with its defaults: frozen records, one per table. Standard library only."""

import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, TypeVar, get_args, get_origin

from agentbox.manifest.tables.agents import AgentTable
from agentbox.manifest.tables.api import ApiTable
from agentbox.manifest.tables.backup import BackupTable
from agentbox.manifest.tables.desktop import DesktopTable
from agentbox.manifest.tables.egress import EgressTable
from agentbox.manifest.tables.gpu import GpuTable
from agentbox.manifest.tables.image import ImageTable
from agentbox.manifest.tables.limits import LimitsTable
from agentbox.manifest.tables.mesh import MeshTable
from agentbox.manifest.tables.meta import MetaTable
from agentbox.manifest.tables.observability import ObservabilityTable
from agentbox.manifest.tables.policies import PolicyTable
from agentbox.manifest.tables.privacy import PrivacyTable
from agentbox.manifest.tables.providers import ProviderTable
from agentbox.manifest.tables.resources import ResourcesTable
from agentbox.manifest.tables.security import SecurityTable
from agentbox.manifest.tables.skills import SkillsTable
from agentbox.manifest.tables.slots import AdaptersTable
from agentbox.manifest.tables.sovereign_mesh import SovereignMeshTable
from agentbox.manifest.tables.state import StateTable
from agentbox.manifest.tables.toolchains import ToolchainsTable
from agentbox.manifest.types import Size

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Model:
    """All tables of a manifest."""

    meta: MetaTable = field(default_factory=MetaTable)
    image: ImageTable = field(default_factory=ImageTable)
    resources: ResourcesTable = field(default_factory=ResourcesTable)
    api: ApiTable = field(default_factory=ApiTable)
    observability: ObservabilityTable = field(default_factory=ObservabilityTable)
    backup: BackupTable = field(default_factory=BackupTable)
    adapters: AdaptersTable = field(default_factory=AdaptersTable)
    mesh: MeshTable = field(default_factory=MeshTable)
    sovereign_mesh: SovereignMeshTable = field(default_factory=SovereignMeshTable)
    providers: Mapping[str, ProviderTable] = field(default_factory=dict)
    privacy: PrivacyTable = field(default_factory=PrivacyTable)
    desktop: DesktopTable = field(default_factory=DesktopTable)
    gpu: GpuTable = field(default_factory=GpuTable)
    toolchains: ToolchainsTable = field(default_factory=ToolchainsTable)
    skills: SkillsTable = field(default_factory=SkillsTable)
    agents: Mapping[str, AgentTable] = field(default_factory=dict)
    state: StateTable = field(default_factory=StateTable)
    limits: LimitsTable = field(default_factory=LimitsTable)
    policies: Mapping[str, PolicyTable] = field(default_factory=dict)
    egress: EgressTable = field(default_factory=EgressTable)
    security: SecurityTable = field(default_factory=SecurityTable)


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
    the token variable; agents inherit [limits].
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
    return result

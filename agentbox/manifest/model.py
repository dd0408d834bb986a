"""The manifest with its defaults: frozen records, one a table. Standard library only."""

import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, TypeVar, get_args, get_origin

from agentbox.manifest.tables.agents import Agent
from agentbox.manifest.tables.api import Api
from agentbox.manifest.tables.backup import Backup
from agentbox.manifest.tables.desktop import Desktop
from agentbox.manifest.tables.egress import Egress
from agentbox.manifest.tables.gpu import Gpu
from agentbox.manifest.tables.image import Image
from agentbox.manifest.tables.limits import Limits
from agentbox.manifest.tables.mesh import Mesh
from agentbox.manifest.tables.meta import Meta
from agentbox.manifest.tables.observability import Observability
from agentbox.manifest.tables.policies import Policy
from agentbox.manifest.tables.privacy import Privacy
from agentbox.manifest.tables.providers import Provider
from agentbox.manifest.tables.resources import Resources
from agentbox.manifest.tables.security import Security
from agentbox.manifest.tables.skills import Skills
from agentbox.manifest.tables.slots import Adapters
from agentbox.manifest.tables.sovereign_mesh import SovereignMesh
from agentbox.manifest.tables.state import State
from agentbox.manifest.tables.toolchains import Toolchains
from agentbox.manifest.types import Size

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Model:
    """Every table of a manifest."""

    meta: Meta = field(default_factory=Meta)
    image: Image = field(default_factory=Image)
    resources: Resources = field(default_factory=Resources)
    api: Api = field(default_factory=Api)
    observability: Observability = field(default_factory=Observability)
    backup: Backup = field(default_factory=Backup)
    adapters: Adapters = field(default_factory=Adapters)
    mesh: Mesh = field(default_factory=Mesh)
    sovereign_mesh: SovereignMesh = field(default_factory=SovereignMesh)
    providers: Mapping[str, Provider] = field(default_factory=dict)
    privacy: Privacy = field(default_factory=Privacy)
    desktop: Desktop = field(default_factory=Desktop)
    gpu: Gpu = field(default_factory=Gpu)
    toolchains: Toolchains = field(default_factory=Toolchains)
    skills: Skills = field(default_factory=Skills)
    agents: Mapping[str, Agent] = field(default_factory=dict)
    state: State = field(default_factory=State)
    limits: Limits = field(default_factory=Limits)
    policies: Mapping[str, Policy] = field(default_factory=dict)
    egress: Egress = field(default_factory=Egress)
    security: Security = field(default_factory=Security)


def build(written: Mapping[str, Any]) -> Model:
    """The effective model of what a manifest says. `written` has passed the schema; anything else is a bug."""
    return build_record(Model, _dependent_defaults(written))


def build_record(kind: type[T], values: Mapping[str, Any]) -> T:
    """A record of `kind` from plain data; absent keys take their default."""
    hints = hints_of(kind)  # type: ignore[arg-type]
    return kind(**{name: convert(hints[name], value) for name, value in values.items()})


@cache
def hints_of(kind: type[object]) -> dict[str, Any]:
    """The annotations of a record, `Annotated` kept."""
    return typing.get_type_hints(kind, include_extras=True)


def plain(value: Any) -> Any:
    """A value of the model as TOML would hold it: dicts, lists and scalars."""
    if is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, Size) else value


def convert(hint: Any, value: Any) -> Any:
    """Plain data as the model holds it, by the annotation of its key. The data has passed the schema."""
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
    """Defaults that another key decides: a slot that is off is not required; a token file replaces the token variable;
    the limits of an agent are those of [limits]."""
    result = dict(written)
    if "token_file" in (mesh := result.get("mesh", {})):
        result["mesh"] = {"token_env": "", **mesh}
    adapters = result.get("adapters", {})
    off = {slot: {**table, "required": False} for slot, table in adapters.items() if table.get("use") == "off"}
    if off:
        result["adapters"] = {**adapters, **off}
    if agents := result.get("agents"):
        limits = result.get("limits", {})
        result["agents"] = {
            name: {**agent, "limits": {**limits, **agent.get("limits", {})}} for name, agent in agents.items()
        }
    return result

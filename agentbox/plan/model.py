"""The plan: a manifest resolved for one system, as plain data, identified by its digest. Standard
library only: Stage A of the boot reads `plan.json` with this. All paths are box paths (below `/`);
the process engine relocates them with `core.paths.Paths.resolve`."""

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import Any, Literal, Self

from agentbox.core.canonical import canonical_json, digest
from agentbox.core.frozen import frozen
from agentbox.core.records.plain import build, to_plain
from agentbox.plan.backup_table import BackupPlan
from agentbox.plan.tables import (
    AcpPlan,
    AgentPlan,
    CostPlan,
    EgressPlan,
    LimitsPlan,
    McpPlan,
    MeshPlan,
    NetworkPlan,
    PolicyPlan,
    PrivacyPlan,
    ProviderPlan,
    SandboxesPlan,
    StatePlan,
)


@frozen
class ReadySignal:
    """How the seal detects that a program is ready."""

    by: Literal["notify", "exit0", "tcp", "http", "state"]
    target: str = ""  # tcp: host:port, http: URL


@frozen
class Program:
    """One supervised program. `argv[0]` is absolute; no shell."""

    name: str
    priority: int
    argv: tuple[str, ...]
    required: bool
    ready: ReadySignal
    directory: str = "/"
    env: Mapping[str, str] = field(default_factory=dict)
    startsecs: int = 0
    stop_seconds: int = 3
    stop_signal: str = "TERM"
    log: Literal["stdout", "file"] = "stdout"
    log_bytes: int = 0  # maxbytes of a log file, 0 for stdout
    log_backups: int = 0
    group: str = ""  # "" = no group
    once: bool = False  # runs once, never restarted
    autostart: bool = True  # false: off until another program starts it


@frozen
class Port:
    """A listener of the box. `publish` is the host address, "" if it is not published."""

    owner: str  # manifest key or feature name
    name: str
    port: int
    publish: str = ""


@frozen
class Password:
    """The password of a feature's program. Boot writes it to `/run/agentbox/secrets/<file>`: the
    secret of that name, else one generated at the first boot.
    """

    file: str
    secret: str = ""


@frozen
class Ruleset:
    """All a feature's program may use besides the toolchain (`sandbox/feature_program.py`)."""

    folders: tuple[str, ...] = ()  # read, list, write; created if missing
    runs: tuple[str, ...] = ()  # of those: execute files there, and use terminals
    unlisted: tuple[str, ...] = ()  # read and write known names, without listing
    reads: tuple[str, ...] = ()  # files, or directories with everything below
    devices: tuple[str, ...] = ()  # a name may end with *
    listens: tuple[int, ...] = ()  # TCP ports
    network: bool = False  # any address, and servers on unassigned ports, but for `connects`
    connects: tuple[int, ...] = ()  # with network: to these TCP ports only, and no servers
    sockets: bool = False  # Unix sockets, and System V shared memory, as used by display servers


@frozen
class Probe:
    """One artifact probe. Fields that a kind does not use have their defaults."""

    id: str
    feature: str
    kind: Literal["path", "exec", "python-import", "http", "layer-files"]
    required: bool = True
    stage: Literal["boot", "deep"] = "boot"
    timeout_seconds: float = 5
    reason: str = ""
    path: str = ""
    type: Literal["file", "dir", "exec"] = "file"
    glob: str = ""
    min_count: int = 1
    argv: tuple[str, ...] = ()
    exit_code: int = 0
    stdout_regex: str = ""
    modules: tuple[str, ...] = ()
    # exec and python-import: added to the minimal environment
    env: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    status: int = 200
    body_regex: str = ""


@frozen
class TmpfsPlan:
    target: str
    size: int  # bytes
    mode: str
    exec: bool = False


@frozen
class VolumePlan:
    source: str  # volume name, or absolute host path
    target: str
    read_only: bool = False


@frozen
class Device:
    """A device request (`driver`, `count`, `capabilities`)."""

    driver: str
    count: int
    capabilities: tuple[str, ...]


@frozen
class SecurityExceptionPlan:
    """What an exception adds to the baseline. It cannot remove anything."""

    key: str
    reason: str
    tmpfs: tuple[TmpfsPlan, ...] = ()
    volumes: tuple[VolumePlan, ...] = ()
    devices: tuple[str, ...] = ()
    group_add: tuple[str, ...] = ()
    cap_add: tuple[str, ...] = ()
    device_requests: tuple[Device, ...] = ()
    runtime: str = ""
    seccomp: str = ""


@frozen
class ResourcesPlan:
    cpus: float
    memory: int  # bytes
    pids: int
    nofile: int
    tmp_size: int  # bytes
    log_size: int  # bytes
    stop_seconds: int


@frozen
class SlotPlan:
    """A resolved slot: `options` are the keys of `[adapters.<slot>]` that its implementation reads,
    sizes in bytes; `plan.slots.slot_options` makes them a record."""

    use: str
    required: bool
    options: Mapping[str, bool | int | str | tuple[str, ...]] = field(default_factory=dict)


@frozen
class ApiPlan:
    port: int
    publish_address: str
    auth: str
    max_body: int  # bytes
    public_base: str
    token_env: str
    session_idle_seconds: int
    session_seconds: int


@frozen
class ObservabilityPlan:
    metrics_port: int
    publish_address: str
    otlp_endpoint: str
    log_level: str


@frozen
class Destination:
    """A TCP destination of the box. `host` is an address range (CIDR), "" for resolved names;
    `port` 0 is any; `private` includes addresses of private networks."""

    owner: str  # manifest key
    host: str
    port: int
    private: bool


@frozen
class Digests:
    """Digests of the inputs, `sha256:<hex>` each; `lock` and `seccomp` of the bytes of those files,
    `skills` of those in the image, by name; `mcp` of pinned tools, by `<server>/<tool>`."""

    manifest: str
    lock: str
    seccomp: str
    skills: Mapping[str, str] = field(default_factory=dict)
    mcp: Mapping[str, str] = field(default_factory=dict)


@frozen
class Plan:
    """What renderers, boot and API need. `writable_roots` are checked at boot and by /ready."""

    schema: int = 1
    version: str
    name: str
    system: str
    dev: bool
    source: str
    suite: str
    python: str  # "3.13": interpreter of the image
    features: tuple[str, ...]
    skills: tuple[str, ...] = ()  # directories of the corpus in the image
    digests: Digests
    resources: ResourcesPlan
    api: ApiPlan
    observability: ObservabilityPlan
    mesh: MeshPlan
    privacy: PrivacyPlan
    limits: LimitsPlan  # of every agent that has no table
    agents: Mapping[str, AgentPlan] = field(default_factory=dict)
    mcp: McpPlan
    state: StatePlan
    sandboxes: SandboxesPlan
    backup: BackupPlan
    acp: AcpPlan
    policies: Mapping[str, PolicyPlan] = field(default_factory=dict)
    providers: Mapping[str, ProviderPlan] = field(default_factory=dict)
    cost: CostPlan
    reach: EgressPlan
    network: NetworkPlan | None = None  # None: directly, as most boxes do
    slots: Mapping[str, SlotPlan]
    programs: tuple[Program, ...]
    rulesets: Mapping[str, Ruleset] = field(default_factory=dict)  # by program of a feature
    ports: tuple[Port, ...]
    probes: tuple[Probe, ...]
    tmpfs: tuple[TmpfsPlan, ...]
    volumes: tuple[VolumePlan, ...]
    writable_roots: tuple[str, ...]
    secrets: tuple[str, ...]  # names of compose secrets
    passwords: tuple[Password, ...] = ()
    environment: Mapping[str, str]  # plain data of the container; never a credential
    passed: tuple[str, ...] = ()  # names of variables that are passed on; never a credential
    egress: tuple[Destination, ...]
    exceptions: tuple[SecurityExceptionPlan, ...]
    apply: Mapping[str, str]  # by key path: digest of its value, and apply class, for drift
    test_hooks: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain data, ready for `canonical_json`."""
        data: dict[str, Any] = to_plain(self)
        if self.network is None:
            del data["network"]
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `to_json`. Raises ValueError with the missing or unknown field."""
        plan: Self = build(cls, data, "plan")
        return plan

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON, computed once: a plan is immutable."""
        return digest(canonical_json(self.to_json()))

    def program(self, name: str) -> Program:
        """The program of that name. Raises KeyError."""
        return {program.name: program for program in self.programs}[name]

    @property
    def required_programs(self) -> tuple[Program, ...]:
        return tuple(p for p in self.programs if p.required)

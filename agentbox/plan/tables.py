"""Tables of the manifest as they stand in the plan: every default is filled in, sizes are bytes.
Standard library only: Stage A of the boot reads the plan with this.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from agentbox.core.frozen import frozen


@frozen
class LimitsPlan:
    """Limits of one agent: default and maximum. Sizes in bytes; 0 for `agent_wall_seconds` means
    unlimited.
    """

    memory: int
    cpu: float
    pids: int
    fds: int
    tmp: int
    branch_disk: int
    run_wall_seconds: int
    agent_wall_seconds: int
    stdout: int
    frame: int
    events_kept: int
    tool_timeout_seconds: int
    approval_timeout_seconds: int
    egress: int
    allow_degraded: tuple[str, ...]  # mechanisms that the kernel may lack


@frozen
class ModelBudgetPlan:
    """What an agent may use of its model per window."""

    max_tokens: int
    max_calls: int
    window_seconds: int
    max_concurrent: int
    weight: int
    max_cost: str = ""  # decimal text; "" = no bound


@frozen
class RestartPlan:
    """When an agent is restarted: at most `max_restarts` times in a window."""

    policy: Literal["never", "on-failure", "always"]
    max_restarts: int
    window_seconds: int
    backoff_seconds: int
    backoff_max_seconds: int


@frozen
class AgentAcpPlan:
    """Sessions of an agent that speaks the Agent Client Protocol. Sizes in bytes."""

    permissions: Literal["ask", "allow", "deny"]
    auth: str  # id of a method; "" = that of the preset
    turn_seconds: int
    idle_suspend_seconds: int  # 0 = never
    resume: Literal["auto", "native", "transcript", "never"]
    transcript: Literal["full", "digest", "off"]
    max_transcript: int
    keep_days: int


@frozen
class AgentPlan:
    """One `[agents.<name>]` table, with the limits that it does not set filled in from
    `[limits]`.
    """

    enabled: bool
    autostart: bool
    max_instances: int
    command: tuple[str, ...]
    args: tuple[str, ...]
    protocol: Literal["oneshot", "stdio", "acp"]
    preset: str  # name of a file in config/agents, "" = none
    profile: str
    provider: str  # name in [providers], "" = no model
    env: tuple[str, ...]
    secrets: tuple[str, ...]  # names; never values
    state: Literal["run", "shared"]
    workspace: Literal["branch", "direct"]
    workspace_dir: str
    children: tuple[str, ...]
    skills: tuple[str, ...]  # globs of names
    mcp: tuple[str, ...]  # names in [mcp.servers]
    approval_required: tuple[str, ...]
    limits: LimitsPlan
    llm: ModelBudgetPlan
    restart: RestartPlan
    acp: AgentAcpPlan


@frozen
class ModelPricePlan:
    """Prices for a million tokens, as decimal text; "" = the price of input."""

    input: str
    output: str
    cache_read: str = ""
    cache_write: str = ""


@frozen
class ProviderPlan:
    """One model endpoint. `env_var` names its key; the plan never contains a credential."""

    enabled: bool
    kind: Literal["openai", "anthropic", "gemini"]
    base_url: str  # "" = the vendor's own
    env_var: str
    models: tuple[str, ...]
    max_concurrent: int
    timeout_seconds: int
    prices: Mapping[str, ModelPricePlan] = field(default_factory=dict)  # by pattern of models


@frozen
class CostPlan:
    """How calls of models are counted in money."""

    currency: str
    unknown: Literal["refuse", "count"]
    keep_days: int


@frozen
class EgressPlan:
    """The maximum of hosts that agents may reach."""

    allow: tuple[str, ...]
    allow_private: tuple[str, ...]
    connect_timeout_seconds: int
    max_connections: int


@frozen
class NetworkPlan:
    """How the box reaches others. `proxy_env` names the secret `user:password`."""

    proxy: str  # "" = directly
    proxy_env: str
    no_proxy: tuple[str, ...]
    ca_bundle: str  # path of the host; "" = the image's authorities alone
    resolve: Literal["local", "proxy"]


@frozen
class RulePlan:
    """One rule of a policy."""

    mode: Literal["allow", "deny"]
    operations: tuple[str, ...]
    patterns: tuple[str, ...]


@frozen
class NetRulePlan(RulePlan):
    """A rule about the network. `methods` and `paths` restrict it to such plain HTTP requests;
    () = all.
    """

    methods: tuple[str, ...]
    paths: tuple[str, ...]


@frozen
class PolicyPlan:
    """One `[policies.<name>]` table: rules in addition to those of `base`."""

    base: str
    fs: tuple[RulePlan, ...]
    net: tuple[NetRulePlan, ...]
    exec: tuple[RulePlan, ...]
    env: tuple[RulePlan, ...]
    tool: tuple[RulePlan, ...]
    llm: tuple[RulePlan, ...]
    agent: tuple[RulePlan, ...]


@frozen
class MeshPlan:
    """The role of this box in a federation."""

    mode: Literal["standalone", "client", "host"]
    host_url: str
    token_env: str
    token_file: str
    heartbeat_seconds: int
    connect_timeout_seconds: int
    ca_file: str  # "" = the system's certificates
    admit_images: tuple[str, ...]  # digests; () = all
    admit_postures: tuple[str, ...]
    missed_heartbeats_before_eviction: int
    max_clients: int


@frozen
class PrivacyPlan:
    """What is redacted. `policy` is the strictness per slot and direction: `strict`, `soft` or
    `off`.
    """

    enabled: bool
    mode: str
    dtype: str
    port: int
    entities: tuple[str, ...]
    policy: Mapping[str, Literal["strict", "soft", "off"]]


@frozen
class SandboxesPlan:
    """Bounds of sandboxes: how many, their life, programs at the same time in one of them, bytes of
    a file that one call reads or writes.
    """

    max: int
    ttl_seconds: int
    max_exec: int
    max_file: int


@frozen
class AcpPlan:
    """Bounds of sessions: how many run and how many are suspended, bytes of one message, seconds
    that an agent has for each answer.
    """

    max_sessions: int
    max_suspended: int
    max_message: int
    initialize_seconds: int
    new_seconds: int
    cancel_seconds: int
    v2: bool


@frozen
class StatePlan:
    """How long the memory and pods of unnamed runs are kept after their end; 0 = not at all."""

    keep_days: int


@frozen
class McpHeaderPlan:
    """One header: its value, or the name of the secret that is its value."""

    value: str
    env_var: str


@frozen
class McpServerPlan:
    """One `[mcp.servers.<name>]` table; `max_result` in bytes."""

    enabled: bool
    transport: Literal["stdio", "http"]
    command: tuple[str, ...]
    args: tuple[str, ...]
    env: tuple[str, ...]
    secrets: tuple[str, ...]  # names; never values
    profile: str
    workspace: Literal["none", "read", "branch"]
    instance: Literal["agent", "shared"]
    idle_seconds: int
    limits: LimitsPlan
    url: str
    auth: Literal["none", "bearer"]
    env_var: str
    tools: tuple[str, ...]  # globs of names
    pin: Literal["locked", "first-use"]
    call_seconds: int
    max_result: int
    elicitation: bool
    sampling: bool
    headers: Mapping[str, McpHeaderPlan] = field(default_factory=dict)  # by name


@frozen
class McpPlan:
    """The MCP servers of the box, and bounds of all; `description` in bytes."""

    max_servers: int
    max_tools: int
    description: int
    servers: Mapping[str, McpServerPlan] = field(default_factory=dict)

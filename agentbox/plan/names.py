"""Names of volumes and programs, defined here only. Standard library only."""

STATE = "state"
BRANCHES = "branches"
BACKUPS = "backups"
WORKSPACE = "workspace"
SERVICE = "agentbox"  # of the compose file, and its network

BOOTSTRAP = "bootstrap"
API = "management-api"
GATEWAY = "gateway"
MODEL_METRICS_FILE = (
    "models.json"  # in the run directory: counters of the model gateway, for /metrics
)
AGENT_HOST = "agent-host"
SESSION_HOST = "session-host"
MCP_HOST = "mcp-host"
BACKUP = "backup"
SEAL = "bootstrap-seal"

STAGE_VARIABLE = "AGENTBOX_BOOTSTRAP_STAGE"
STAGE_B = "B"

LEGACY_TOKEN = "MANAGEMENT_API_KEY"  # the API token if api.token_env names no secret

TARGET_VARIABLE = "AGENTBOX_TARGET"
KUBERNETES = "kubernetes"

ONCE_GROUP = "once"
FEATURE_GROUP = "features"

# of the box's own programs: not accessible to agents, and need not exist
HOME = "/var/lib/agentbox/home"

"""Names of volumes and programs, each a literal here and nowhere else. Standard library only."""

STATE = "state"
BRANCHES = "branches"
WORKSPACE = "workspace"

BOOTSTRAP = "bootstrap"
API = "management-api"
GATEWAY = "gateway"
MODEL_METRICS_FILE = (
    "models.json"  # in the folder of the running box: what the model gateway counts, for /metrics
)
AGENT_HOST = "agent-host"
SEAL = "bootstrap-seal"

STAGE_VARIABLE = "AGENTBOX_BOOTSTRAP_STAGE"
STAGE_B = "B"

LEGACY_TOKEN = (
    "MANAGEMENT_API_KEY"  # a secret that is the API's token where api.token_env names none
)

TARGET_VARIABLE = "AGENTBOX_TARGET"
KUBERNETES = "kubernetes"

ONCE_GROUP = "once"
FEATURE_GROUP = "features"

HOME = "/var/lib/agentbox/home"  # of the box's own programs: no agent writes or reads it; there need be none

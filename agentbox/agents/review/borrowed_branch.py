"""The branch of another agent as the workspace of an MCP server that serves that agent."""

from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.review import baseline
from agentbox.agents.review.branch import WORK, Branch
from agentbox.agents.review.review_files import ReviewFiles
from agentbox.agents.runs import home
from agentbox.agents.runs.confinement import resolve_in_box
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import SpawnError


def borrow(paths: Paths, files: ReviewFiles, entry: AgentRecord) -> Branch:
    """That of `entry.branch_of`, or for "" an empty folder. Without a size: what is written there
    counts as its agent's. Blocks. Raises SpawnError (stage branch)."""
    try:
        if not entry.branch_of:
            own = resolve_in_box(paths, home.agent_dir(paths, entry.agent_id))
            return Branch(work=home.empty_workspace(own))
        owner = resolve_in_box(paths, home.agent_dir(paths, entry.branch_of))
        recorded = baseline.read(files.baseline_path(entry.branch_of))
    except (OSError, ValueError) as error:
        raise _failure(entry, str(getattr(error, "strerror", None) or error)) from error
    if recorded is None:
        raise _failure(entry, "its agent has none")
    return Branch(work=owner / WORK, objects=recorded.objects)


def _failure(entry: AgentRecord, reason: str) -> SpawnError:
    return SpawnError(f"cannot open the branch for {entry.spec.name}: {reason}", stage="branch")

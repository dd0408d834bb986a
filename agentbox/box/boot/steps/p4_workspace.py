"""Phase 4: a fresh workspace explains itself. A folder that holds anything belongs to its user and is left alone."""

from agentbox.box.boot.context import Context

PHASE, BUDGET_MS = "4", 15
README = """# The workspace of this box

What agents make lands here. It is a volume of its own: it survives `agentbox down` and a new image,
and `agentbox down --volumes` removes it. `agentbox up --project DIR` mounts a folder of yours in its place.
"""


def run(context: Context) -> None:
    """Writes `README.agentbox.md` into an empty workspace, and makes the folder that screenshots go to."""
    context.paths.screenshots.mkdir(exist_ok=True)
    workspace = context.paths.workspace
    if not any(workspace.iterdir()):
        (workspace / "README.agentbox.md").write_text(README, encoding="utf-8")

"""Phase 4: adds a README to an empty workspace. A workspace with content belongs to its user and is
not changed.
"""

from agentbox.box.boot.context import Context

PHASE, BUDGET_MS = "4", 15
README = """# The workspace of this box

Agents work here. It is a separate volume: it survives `agentbox down` and a new image,
and `agentbox down --volumes` removes it. `agentbox up --project DIR` mounts your own directory
instead.
"""


def run(context: Context) -> None:
    """Writes `README.agentbox.md` into an empty workspace, and creates the directory for
    screenshots.
    """
    context.paths.screenshots.mkdir(exist_ok=True)
    workspace = context.paths.workspace
    if not any(workspace.iterdir()):
        (workspace / "README.agentbox.md").write_text(README, encoding="utf-8")

"""Commands of an editor about the changes of its session: `/agentbox:review`, `:commit DIGEST` and
`:discard`. They are taken from a prompt of the editor alone, and need the scope `reviews:write`.
The session is suspended for them: the branch is compared while nobody writes it.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from agentbox.contracts.reviews import ReviewChange, ReviewPage
from agentbox.core.slot_errors import AdapterError, PermissionDenied, ValidationError

if TYPE_CHECKING:
    from agentbox.sessions.live_session import LiveSession
    from agentbox.sessions.manager import SessionManager

PREFIX: Final = "/agentbox:"
SCOPE: Final = "reviews:write"
_MAX_SHOWN: Final = 64 << 10  # characters of a review in a message
_PAGE: Final = 100  # changes of it
COMMANDS: Final[tuple[Mapping[str, Any], ...]] = (
    {"name": "agentbox:review", "description": "Show what changed, before it is taken."},
    {
        "name": "agentbox:commit",
        "description": "Take the changes that were shown into the workspace.",
        "input": {"hint": "DIGEST of the review"},
    },
    {"name": "agentbox:discard", "description": "Drop all changes of this session."},
)


def command_of(prompt: list[dict[str, Any]]) -> list[str]:
    """The words of a command, empty if the prompt is for the agent."""
    text = prompt[0].get("text") if prompt and prompt[0].get("type") == "text" else None
    if not isinstance(text, str) or not text.startswith(PREFIX):
        return []
    return text.removeprefix(PREFIX).split()


async def run_command(
    manager: "SessionManager",
    session: "LiveSession",
    words: list[str],
    principal: str,
    scopes: list[str],
) -> str:
    """What the editor is told, as Markdown. Raises PermissionDenied, ValidationError, and what
    reviews raise."""
    if SCOPE not in scopes and "admin" not in scopes:
        raise PermissionDenied(
            f"cannot run {PREFIX}{words[0]}: the token of this editor lacks {SCOPE}", scope=SCOPE
        )
    agent_id = session.stored.sandbox_id
    host = session.environment.host
    match words:
        case ["review"]:
            return await _review(manager, session)
        case ["commit", digest]:
            committed = await host.commit_review(agent_id, digest=digest, by=principal)
            return f"Taken into the workspace: {committed.changed} paths.\n"
        case ["discard"]:
            await _review(manager, session)
            try:
                await host.discard_review(agent_id, by=principal)
            except AdapterError as error:
                if error.code != "not-found":
                    raise
                return "There is nothing to discard.\n"
            return "The changes are dropped; the next prompt begins with the workspace as it is.\n"
    known = ", ".join(f"/{command['name']}" for command in COMMANDS)
    raise ValidationError(
        f"cannot run {PREFIX}{' '.join(words)}: the commands are {known}",
        hint=f"{PREFIX}commit needs the digest that {PREFIX}review shows",
        errors=[{"pointer": "/prompt", "detail": f"must be one of {known}"}],
    )


async def _review(manager: "SessionManager", session: "LiveSession") -> str:
    await manager.suspend(session)
    host, agent_id = session.environment.host, session.stored.sandbox_id
    if not await host.review_sandbox(agent_id):
        return "Nothing has changed.\n"
    return _shown(await host.show_review(agent_id, at=0, limit=_PAGE))


def _shown(page: ReviewPage) -> str:
    summary, text = page.summary, ""
    for change in page.changes:
        part = _change(change)
        if len(text) + len(part) > _MAX_SHOWN:
            break
        text += part
    counts = f"{summary.added} added, {summary.modified} modified, {summary.deleted} deleted"
    whole = summary.added + summary.modified + summary.deleted
    more = (
        ""
        if page.next is None and len(page.changes) == whole
        else (f"\nThe whole review: `agentbox review show {summary.agent_id}`\n")
    )
    return (
        f"{counts}\n{text}{more}\nTake it with `{PREFIX}commit {summary.digest}`, "
        f"or drop it with `{PREFIX}discard`.\n"
    )


def _change(change: ReviewChange) -> str:
    runs = f" (runs by itself: {change.runs})" if change.runs else ""
    fence = "`" * max(3, _longest_run(change.diff) + 1)
    return f"\n{change.what} {change.path}{runs}\n{fence}diff\n{change.diff}{fence}\n"


def _longest_run(text: str) -> int:
    """The longest run of backquotes: a fence must be longer."""
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return longest

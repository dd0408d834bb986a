"""Stages 7 to 9: render, start, wait; and what is said at the end."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agentbox.cli.context import Cli
from agentbox.engine.choose import Engine
from agentbox.engine.state import BoxRecord
from agentbox.engine.waiting import Waited, wait_until_ready
from agentbox.errors import AgentboxError, ExitCode
from agentbox.plan.model import Plan
from agentbox.settings import Paths

_WAIT_SECONDS = 120.0
_LOG_LINES = 20


@dataclass(frozen=True)
class Ended:
    """A box that `up` has brought to ready."""

    record: BoxRecord
    waited: Waited


def wait(cli: Cli, engine: Engine, record: BoxRecord) -> Waited:
    """Watches `/ready`. Raises AgentboxError (exit 1) with the first missing requirement and the box's last lines."""

    def show(seconds: float, missing: list[str]) -> None:
        cli.out.redraw(f"waiting {seconds:.1f} s  missing: {missing[0] if missing else ''}")

    waited = wait_until_ready(engine, record, cli.timeout or _WAIT_SECONDS, show)
    if waited.ready:
        return waited
    missing = waited.verdict.get("missing", [])
    why = (
        waited.ended
        or f"after {waited.seconds:.0f} s still missing: {', '.join(missing) or 'an answer of the management API'}"
    )
    tail = list(engine.logs(record, follow=False, lines=_LOG_LINES, since=None))
    raise AgentboxError(
        f"cannot bring the box {record.name} to ready: {why}\n" + "\n".join(f"  | {line}" for line in tail),
        _fix(tail) or "See `./agentbox.sh boot explain`; the box is left as it is for inspection.",
        exit_code=ExitCode.BAD,
    )


def keep_token(cli: Cli, engine: Engine, record: BoxRecord, plan: Plan) -> Path:
    """Reads the admin token once through the engine into the state folder (0600)."""
    state = cli.state()
    given = _given_token(cli, plan)
    state.keep_token(given or engine.read(record, str(Paths().api_key)).decode().strip())
    return state.token_file


def _given_token(cli: Cli, plan: Plan) -> str:
    from agentbox.engine.secrets import collect

    return collect([plan.api.token_env], cli.manifest).get(plan.api.token_env, "") if plan.api.token_env else ""


def _fix(lines: list[str]) -> str:
    """The remedy that the boot itself named, if its last lines hold a BootstrapFailed event."""
    import json

    for line in reversed(lines):
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and event.get("event") == "BootstrapFailed":
            return str(event.get("fix") or "")
    return ""

"""Stages 7 to 9: render, start, wait."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from agentbox.box.supervision.secrets import is_placeholder
from agentbox.core.canonical import canonical_json, digest
from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.paths import Paths, environment
from agentbox.host.cli.context import Cli
from agentbox.host.cli.logview import Line
from agentbox.host.cli.stages.image import plan_of, running_source_digest
from agentbox.host.engines.base import Start
from agentbox.host.engines.bring import Brought, bring, check
from agentbox.host.engines.choose import Engine
from agentbox.host.engines.missing_reasons import meaning
from agentbox.host.engines.named import engine_named
from agentbox.host.engines.secrets import collect
from agentbox.host.engines.state import BoxRecord, BuildStamp
from agentbox.host.engines.waiting import SILENT, Waited, ask_ready, boot_lines, failure, fix, wait_until_ready

if TYPE_CHECKING:
    from agentbox.manifest.load import Manifest

_WAIT_SECONDS = 120.0
_LOG_LINES = 20
_HOOK = "AGENTBOX_TEST_"


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What the command line asks of the box besides its manifest."""

    registry: str = ""  # NAME@sha256:…, "" = the image is built here
    project: Path | None = None
    strict: bool = False
    test_hooks: bool = False
    hooks: Mapping[str, str] = field(default_factory=dict)


def hooks_given() -> dict[str, str]:
    """The AGENTBOX_TEST_* variables of the caller."""
    return {name: value for name, value in environment().items() if name.startswith(_HOOK)}


def start_again(cli: Cli, manifest: Manifest, record: BoxRecord) -> Start:
    """What runs, over today's manifest. Raises AgentboxError (exit 1) when it is not known what the box was made of."""
    if not record.settled:
        raise AgentboxError(
            f"cannot boot the box {record.name} again: what it was made of is not known", "Run ./agentbox.sh up."
        )
    wish = Wish(
        project=Path(record.project) if record.project else None, strict=record.strict, test_hooks=record.test_hooks,
        hooks=record.hooks,
    )  # fmt: skip
    wanted = start_of(cli, manifest, None, wish)
    return replace(
        wanted, image_ref=record.image_ref, image_id=record.image_id, pulled=record.pulled, made_of=record.made_of
    )


def start_of(cli: Cli, manifest: Manifest, stamp: BuildStamp | None, wish: Wish) -> Start:
    """Everything that a box is started from."""
    plan = plan_of(manifest, cli.lock, test_hooks=wish.test_hooks)
    hooks = wish.hooks if wish.test_hooks else {}
    return Start(
        plan=plan, manifest=manifest.raw, state=cli.state(), image_ref=stamp.reference if stamp else "",
        image_id=stamp.image_id if stamp else "", pulled=stamp is not None and stamp.pulled, project=wish.project, strict=wish.strict, hooks=hooks,
        secrets=collect(plan.secrets, cli.manifest, cli.state().secrets_dir), made_of=made_of(stamp, wish),
    )  # fmt: skip


def made_of(stamp: BuildStamp | None, wish: Wish) -> str:
    """Digest of what is neither plan nor secret: the image, or the sources and where they run from, and the wish."""
    hooks = wish.hooks if wish.test_hooks else {}
    source = _name_of(stamp) if stamp else f"{running_source_digest()} {sys.prefix}"
    return digest(canonical_json([source, str(wish.project or ""), wish.strict, dict(hooks)]))


def _name_of(stamp: BuildStamp) -> str:
    return stamp.reference if stamp.pulled else stamp.image_id


def bring_up(cli: Cli, engine: Engine, start: Start) -> Brought:
    """Starts the box, or changes the one that runs by the least that is needed."""
    last = cli.known_record()
    check(engine, start, last)
    return bring(engine, start, last, apply_live=_applier(cli), failed_boot=_boot_failed(engine, last))


def _boot_failed(engine: Engine, last: BoxRecord | None) -> bool:
    """True for a box that runs and will never become ready by itself."""
    if last is None or engine.name != last.engine or engine.inspect(last).state != "running":
        return False
    return ask_ready(last.api_url)[0] != 200 and bool(failure(boot_lines(engine, last)))


def _applier(cli: Cli) -> Callable[[BoxRecord], bool]:
    """Asks the box to take the live keys of its mounted manifest over. False where it refuses or does not answer."""

    def apply_live(record: BoxRecord) -> bool:
        from agentbox.client import BoxClient

        try:
            with BoxClient(record.api_url, token=cli.state().token()) as client:
                client.call("config_apply")
        except AgentboxError as error:
            cli.out.note(f"  {error.message}; booting again instead")
            return False
        return True

    return apply_live


def wait(cli: Cli, engine: Engine, record: BoxRecord) -> Waited:
    """Watches `/ready`. Raises AgentboxError (exit 1) with the first missing requirement and the box's last lines."""

    def show(seconds: float, missing: list[str]) -> None:
        cli.out.redraw(f"waiting {seconds:.1f} s  missing: {', '.join(missing)}")

    waited = wait_until_ready(engine, record, cli.timeout or _WAIT_SECONDS, show)
    if waited.ready:
        return waited
    cli.out.redraw("")
    lines = boot_lines(engine, record)
    tail = "".join(f"\n  | {Line.of(line).for_people(color=False)}" for line in lines[-_LOG_LINES:])
    raise AgentboxError(
        f"cannot bring the box {record.name} to ready: {_why(waited)}{tail}",
        f"{fix(lines) or 'The box is left as it is.'} See ./agentbox.sh logs and ./agentbox.sh boot explain.",
        exit_code=ExitCode.BAD,
    )


def _why(waited: Waited) -> str:
    if waited.ended:
        return waited.ended
    missing = waited.verdict.get("missing") or [SILENT]
    more = f" ({text})" if (text := meaning(missing[0])) else ""
    return f"after {waited.seconds:.0f} s still missing: {missing[0]}{more}" + "".join(f", {m}" for m in missing[1:])


def keep_token(cli: Cli, record: BoxRecord, wanted: Start) -> Path:
    """Keeps the admin token in the state folder (0600): the one that the box was given, else the one that it made.

    Read anew, because a secret that changed since is the box's token now. Raises AgentboxError (exit 6).
    """
    given = wanted.secrets.get(wanted.plan.api.token_env, "")
    token = ("" if is_placeholder(given) else given) or engine_named(record.engine).read(
        record, str(Paths().api_key)
    ).decode()
    cli.state().keep_token(token.strip())
    return cli.state().token_file

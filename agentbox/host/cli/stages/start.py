"""Stages 7 to 9: render, start, wait."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from agentbox.box.supervision.secrets import is_placeholder
from agentbox.core.canonical import canonical_json, digest
from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.files.atomic_text import wrap_os_errors
from agentbox.core.frozen import frozen
from agentbox.core.paths import Paths, environment
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.log_line import LogLine
from agentbox.host.cli.stages.image import plan_for, running_source_digest
from agentbox.host.cli.stages.optional_requirements import install
from agentbox.host.engines.base import StartSpec
from agentbox.host.engines.engine_choice import Engine
from agentbox.host.engines.missing_reasons import explain_missing
from agentbox.host.engines.readiness import (
    NO_ANSWER,
    WaitResult,
    boot_failure,
    boot_lines,
    query_ready,
    suggested_fix,
    wait_until_ready,
)
from agentbox.host.engines.reconcile import UpResult, check, reconcile
from agentbox.host.engines.registry import engine_by_name
from agentbox.host.engines.secrets import collect_secrets
from agentbox.host.engines.state import BoxRecord, BuildStamp
from agentbox.host.generations.store import GenerationStore
from agentbox.plan.names import MCP_HOST

if TYPE_CHECKING:
    from agentbox.manifest.load import Manifest

_WAIT_SECONDS = 120.0
_LOG_LINES = 20
_HOOK_PREFIX = "AGENTBOX_TEST_"


@frozen
class UpOptions:
    """Options of `up` beside the manifest."""

    registry: str = ""  # NAME@sha256:…; "" = build locally
    project: Path | None = None
    strict: bool = False
    test_hooks: bool = False
    hooks: Mapping[str, str] = field(default_factory=dict)


def hooks_from_environment() -> dict[str, str]:
    """The AGENTBOX_TEST_* variables of the caller."""
    return {name: value for name, value in environment().items() if name.startswith(_HOOK_PREFIX)}


def restart_spec(cli: CliContext, manifest: Manifest, record: BoxRecord) -> StartSpec:
    """The running box with the current manifest. Raises AgentboxError (exit 1) if the last start
    was interrupted."""
    if not record.settled:
        raise AgentboxError(
            f"cannot restart the box {record.name}: its last start was interrupted",
            "Run ./agentbox.sh up.",
        )
    options = UpOptions(
        project=Path(record.project) if record.project else None,
        strict=record.strict,
        test_hooks=record.test_hooks,
        hooks=record.hooks,
    )
    spec = start_spec(cli, manifest, options, record.engine)
    return replace(
        spec,
        image_ref=record.image_ref,
        image_id=record.image_id,
        pulled=record.pulled,
        made_of=record.made_of,
    )


def start_spec(cli: CliContext, manifest: Manifest, options: UpOptions, engine: str) -> StartSpec:
    """All inputs of a start without an image."""
    return with_origin(spec_without_origin(cli, manifest, options, engine), None, options)


def spec_without_origin(
    cli: CliContext, manifest: Manifest, options: UpOptions, engine: str
) -> StartSpec:
    """Those that are known before there is an image."""
    from agentbox.host.packages.lock_inputs import folders_of

    plan = plan_for(manifest, cli.lock, test_hooks=options.test_hooks)
    hooks = options.hooks if options.test_hooks else {}
    return StartSpec(
        plan=plan,
        manifest=manifest.raw,
        lock=cli.lock.read_bytes(),
        skill_folders=folders_of(manifest),
        state=cli.state(),
        project=options.project,
        strict=options.strict,
        hooks=hooks,
        secrets=collect_secrets(plan.secrets, cli.manifest, cli.state().secrets_dir),
        volumes=GenerationStore(cli.state()).volumes(engine),
    )


def with_origin(spec: StartSpec, stamp: BuildStamp | None, options: UpOptions) -> StartSpec:
    """The same inputs with what the box is made of: the image, or this package."""
    made_of = origin_digest(stamp, options, spec.plan.digests.skills)
    if stamp is None:
        return replace(spec, made_of=made_of, sources=running_source_digest())
    return replace(
        spec,
        image_ref=stamp.reference,
        image_id=stamp.image_id,
        pulled=stamp.pulled,
        made_of=made_of,
    )


def origin_digest(
    stamp: BuildStamp | None, options: UpOptions, skills: Mapping[str, str] | None = None
) -> str:
    """Digest of the inputs beside plan and secrets: image, or source tree and skills, and
    options."""
    hooks = options.hooks if options.test_hooks else {}
    source = _image_name(stamp) if stamp else f"{running_source_digest()} {sys.prefix}"
    parts = [source, str(options.project or ""), options.strict, dict(hooks)]
    return digest(canonical_json([*parts, dict(skills)] if skills and not stamp else parts))


def _image_name(stamp: BuildStamp) -> str:
    return stamp.reference if stamp.pulled else stamp.image_id


def bring_up(cli: CliContext, engine: Engine, spec: StartSpec) -> UpResult:
    """Starts the box, or applies the smallest change to the running one."""
    previous = cli.find_record()
    check(engine, spec, previous)
    if engine.name == "process" and MCP_HOST in {program.name for program in spec.plan.programs}:
        install("mcp")  # an image has it among its packages; this box runs in our environment
    return reconcile(
        engine,
        spec,
        previous,
        apply_live=_live_applier(cli),
        failed_boot=_has_failed_boot(engine, previous),
    )


def _has_failed_boot(engine: Engine, previous: BoxRecord | None) -> bool:
    """True for a running box whose boot failed."""
    if (
        previous is None
        or engine.name != previous.engine
        or engine.inspect(previous).state != "running"
    ):
        return False
    return query_ready(previous.api_url)[0] != 200 and bool(
        boot_failure(boot_lines(engine, previous))
    )


def _live_applier(cli: CliContext) -> Callable[[BoxRecord], bool]:
    """Returns a function that makes the box apply live keys; False if it refuses or fails."""

    def apply_live(record: BoxRecord) -> bool:
        from agentbox.client import BoxClient

        try:
            with BoxClient(record.api_url, token=cli.state().token()) as client:
                client.call("config_apply")
        except AgentboxError as error:
            cli.out.note(f"  {error.message}; restarting instead")
            return False
        return True

    return apply_live


def wait_for_box(cli: CliContext, engine: Engine, record: BoxRecord) -> WaitResult:
    """Polls `/ready`. Raises AgentboxError (exit 1) with missing requirements and the log's
    tail."""

    def show_progress(seconds: float, missing: list[str]) -> None:
        cli.out.redraw(f"waiting {seconds:.1f} s  missing: {', '.join(missing)}")

    result = wait_until_ready(engine, record, cli.timeout or _WAIT_SECONDS, show_progress)
    if result.ready:
        return result
    cli.out.redraw("")
    lines = boot_lines(engine, record)
    tail = "".join(
        f"\n  | {LogLine.parse(line).render(color=False)}" for line in lines[-_LOG_LINES:]
    )
    raise AgentboxError(
        f"cannot start the box {record.name}: {failure_reason(result)}{tail}",
        f"{suggested_fix(lines) or 'The box was left in place.'} See ./agentbox.sh logs and "
        "./agentbox.sh boot explain.",
        exit_code=ExitCode.BAD,
    )


def failure_reason(result: WaitResult) -> str:
    if result.exit_reason:
        return result.exit_reason
    missing = result.verdict.get("missing") or [NO_ANSWER]
    detail = f" ({text})" if (text := explain_missing(missing[0])) else ""
    return f"after {result.seconds:.0f} s still missing: {missing[0]}{detail}" + "".join(
        f", {m}" for m in missing[1:]
    )


def store_token(cli: CliContext, record: BoxRecord, spec: StartSpec) -> Path:
    """Stores the admin token in the state directory (0600): the box's secret, else its own token.

    Reads it again, because the secret may have changed. Raises AgentboxError (exit 6).
    """
    return store_admin_token(cli, record, spec.secrets.get(spec.plan.api.token_env, ""))


def forget_token(cli: CliContext) -> None:
    """The next command reads the admin token from the box. Raises AgentboxError (exit 3)."""
    file = cli.state().token_file
    with wrap_os_errors(f"remove {file}"):
        file.unlink(missing_ok=True)


def store_admin_token(cli: CliContext, record: BoxRecord, provided: str) -> Path:
    """As `store_token`; `provided` is the secret that the box was started with, if any."""
    token = ("" if is_placeholder(provided) else provided) or engine_by_name(record.engine).read(
        record, str(Paths().api_key)
    ).decode()
    cli.state().save_token(token.strip())
    return cli.state().token_file

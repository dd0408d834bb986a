"""`agentbox upgrade`: a new generation is prepared, tried, and kept or undone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.stages import start
from agentbox.host.cli.stages.first_backup import backups_are_set_up, make_backup
from agentbox.host.cli.stages.going_back import stores_of
from agentbox.host.cli.stages.preparation import prepare_start
from agentbox.host.cli.stages.trial_end import finish_trial
from agentbox.host.cli.stages.upgrade import UpgradeOptions, upgrade
from agentbox.host.engines.reconcile import RequiredAction, required_action
from agentbox.host.generations.record import BAD
from agentbox.host.generations.recording import describe
from agentbox.host.generations.store import GenerationStore

if TYPE_CHECKING:
    from agentbox.host.engines.base import Engine, StartSpec
    from agentbox.host.engines.state import BoxRecord


@click.command(name="upgrade")
@click.option("--check", is_flag=True, help="Print what would change, and change nothing.")
@click.option(
    "--rehearse",
    is_flag=True,
    help="Try the new generation on a copy, in a throw-away box without ports or network.",
)
@click.option(
    "--to",
    "reference",
    metavar="REF",
    default="",
    help="Pull NAME@sha256:… instead of building; needs no Nix.",
)
@click.option(
    "--wait-agents",
    type=click.FloatRange(min=0, max=86400),
    default=0.0,
    metavar="S",
    help="Wait up to S seconds until no agent runs.",
)
@click.option("--no-backup", is_flag=True, help="Make no backup before it.")
@click.option(
    "--retry", type=click.IntRange(min=1), metavar="N", help="Try the bad generation N again."
)
@click.option("--yes", "-y", is_flag=True, help="Consent to missing packages; do not ask.")
@click.pass_obj
def command(
    cli: CliContext,
    check: bool,
    rehearse: bool,
    reference: str,
    wait_agents: float,
    no_backup: bool,
    retry: int | None,
    yes: bool,
) -> None:
    """Bring the box to the manifest and this release, with a way back.

    The new generation starts held: it migrates and becomes ready, and nothing is written, started
    or sent. It must be ready, have all that was there, run an agent, and stay ready for a while.
    Then it is released; otherwise the old one runs again, and the exit code is 6. --rehearse does
    that in a second box, on a copy of the state, while the present one works.
    """
    if reference and "@sha256:" not in reference:
        raise AgentboxError(
            f"cannot upgrade to {reference}: it is a tag, which may name another image tomorrow",
            "Give NAME@sha256:…, which `docker image inspect` and registries print.",
            exit_code=ExitCode.USAGE,
        )
    with cli.state().exclusive_lock():
        if finish_trial(cli) and cli.state().record() is None:
            return
        named = _is_named(cli, retry) or bool(reference)
        last = cli.running_record()
        options = start.UpOptions(
            registry=reference or _pulled_reference(last),
            project=None,
            strict=last.strict,
            test_hooks=last.test_hooks,
            hooks=last.hooks,
        )
        engine, spec = prepare_start(
            cli,
            last.engine,
            options=options,
            project=Path(last.project) if last.project else None,
            force_build=False,
            locked=False,
            yes=yes,
        )
        action = required_action(engine, spec, last)
        if check:
            _print_check(cli, engine, spec, action)
            return
        if action.kind in {"nothing", "apply", "boot"}:
            cli.out.document({"generation": last.generation, "changed": False})
            hint = "" if action.kind == "nothing" else f"; `agentbox up` applies {action.reason}"
            cli.out.line(f"no new generation is needed{hint}")
            return
        if rehearse:
            _rehearse(cli, engine, spec, last)
            return
        generation = upgrade(
            cli,
            engine,
            spec,
            last,
            UpgradeOptions(
                wait_agents=wait_agents,
                backup=lambda: "" if no_backup else _make_backup(cli),
                named=named,
                may_return=lambda reason: may_return(cli, reason, yes=yes),
            ),
        )
    cli.out.document({"generation": generation.number, "changed": True, "verdict": "good"})
    cli.out.line(f"generation {generation.number} is good: {last.api_url}")


def _rehearse(cli: CliContext, engine: Engine, spec: StartSpec, last: BoxRecord) -> None:
    from agentbox.host.cli.stages.upgrade_rehearsal import rehearse_upgrade

    report, moved = rehearse_upgrade(cli, engine, spec, last)
    degraded = list(report.degraded)
    cli.out.document({"changed": False, "good": True, "migrates": moved, "degraded": degraded})
    cli.out.line(f"the new generation is good on a copy of {last.name}; nothing has changed")


def _pulled_reference(last: BoxRecord) -> str:
    return last.image_ref if last.pulled else ""


def _is_named(cli: CliContext, number: int | None) -> bool:
    """True with --retry. Raises AgentboxError (exit 2) for a generation that is not bad."""
    if number is None:
        return False
    if (verdict := GenerationStore(cli.state()).get(number).verdict) != BAD:
        raise AgentboxError(
            f"cannot try generation {number} again: it is {verdict}, not bad",
            "Leave --retry out; `agentbox generations` lists the bad ones.",
            exit_code=ExitCode.USAGE,
        )
    return True


def _make_backup(cli: CliContext) -> str:
    """The pre-upgrade backup; "" with a note where backups are not set up. Raises AgentboxError:
    nothing has changed then.
    """
    if not cli.load_manifest().usable.upgrade.backup:
        return ""
    if not backups_are_set_up(cli):
        cli.out.note("no backup before this upgrade: none is set up (agentbox backup init)")
        return ""
    return make_backup(cli, "upgrade")


def may_return(cli: CliContext, reason: str, *, yes: bool) -> bool:
    """What `upgrade.rollback` says; without a terminal, `ask` goes back."""
    choice = cli.load_manifest().usable.upgrade.rollback
    if choice == "ask":
        if yes or not sys.stdin.isatty():
            return True
        return click.confirm(f"Not good: {reason}. Go back?", default=True, err=True)
    return choice == "auto"


def _print_check(cli: CliContext, engine: Engine, spec: StartSpec, action: RequiredAction) -> None:
    """Plan, migrations, and whether there is room for the copies."""
    from agentbox.api.stores import moving

    store = GenerationStore(cli.state())
    current = store.current()
    document: dict[str, Any] = {"action": action.kind, "reason": action.reason}
    if current is not None:
        stores = stores_of(cli, engine, current, describe(engine, spec))
        states, known = stores.states(), stores.known()
        numbers = {name: int(state["migration"]) for name, state in states.items()}
        moved = moving(numbers, known)
        document |= {
            "generation": current.number,
            "plan_digest": [current.plan_digest, spec.plan.digest],
            "migrations": {name: [numbers[name], known[name]] for name in moved},
            "held_seconds": cli.load_manifest().usable.upgrade.settle_seconds,
        }
    cli.out.document(document)
    cli.out.line(f"{action.kind}: {action.reason or 'nothing changed'}")
    for name, (before, after) in document.get("migrations", {}).items():
        cli.out.line(f"migrates {name}: {before} -> {after}, after a copy")
    if action.kind in {"start", "recreate"} and current is not None:
        cli.out.line(
            f"held for its trial of at least {document['held_seconds']} s; writes answer 503 then"
        )

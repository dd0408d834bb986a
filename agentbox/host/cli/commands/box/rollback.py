"""`agentbox rollback`: goes back to an earlier generation."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.stages.going_back import require_startable
from agentbox.host.cli.stages.rollback import (
    RollbackPlan,
    choose_target,
    describe_loss,
    plan_rollback,
    roll_back,
    runs,
)
from agentbox.host.cli.stages.trial_end import return_from_trial
from agentbox.host.generations.store import GenerationStore


@click.command(name="rollback")
@click.argument("number", type=click.IntRange(min=1), required=False)
@click.option(
    "--state",
    is_flag=True,
    help="Also put back the stores that the older release cannot read; later changes are lost.",
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def command(cli: CliContext, number: int | None, state: bool, yes: bool) -> None:
    """Go back to generation NUMBER, by default the last good one before the present; one that ran
    last and does not run is started again. In a trial, the one before it.

    Image, plan and options go back; the manifest file of this host does not, so the next `up` goes
    forward again. The state stays, unless the older release cannot read it: then --state is
    needed, and what would be lost is named first.
    """
    with cli.state().exclusive_lock():
        store = GenerationStore(cli.state())
        tried = store.trial().get("number")
        returned, now = return_from_trial(cli), store.current()
        if returned and now is not None and number in (None, now.number):
            _report(cli, now.number, int(tried or 0), 0, {})
            return
        target, current = choose_target(store, number, running=runs(now))
        require_startable(cli, target)
        plan = plan_rollback(cli, target, current, state=state)
        if plan.copies_of and not yes and not _confirm(plan):
            raise AgentboxError(
                f"cannot put back the state: not confirmed; that loses {describe_loss(plan)}",
                "Give --yes.",
                exit_code=ExitCode.USAGE,
            )
        roll_back(cli, target.number, plan.copies_of)
    _report(cli, target.number, current.number, plan.copies_of, plan.lost)


def _report(
    cli: CliContext, number: int, before: int, copies_of: int, lost: Mapping[str, int]
) -> None:
    cli.out.document(
        {
            "generation": number,
            "before": before,
            "state_from": copies_of or None,
            "lost": dict(lost),
        }
    )
    cli.out.line(f"generation {number} runs again (before: {before})")
    cli.out.line("the manifest was not changed: the next `up` goes forward again")


def _confirm(plan: RollbackPlan) -> bool:
    if not sys.stdin.isatty():
        return False
    return click.confirm(
        f"Going back to generation {plan.target.number} loses {describe_loss(plan)}. Continue?",
        default=False,
        err=True,
    )

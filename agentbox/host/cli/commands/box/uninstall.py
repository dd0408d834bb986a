"""`agentbox uninstall`: removes from this host what agentbox made there."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.output import pluralize
from agentbox.host.engines.root_lock import root_lock
from agentbox.host.packages.store.fetch import megabytes
from agentbox.host.uninstall.boxes import box_states
from agentbox.host.uninstall.inventory import Inventory
from agentbox.host.uninstall.last_step import last_script
from agentbox.host.uninstall.orphans import end_orphans, find_orphans
from agentbox.host.uninstall.plan import Planner
from agentbox.host.uninstall.removal import UninstallPlan


@click.command(name="uninstall")
@click.option("--purge", is_flag=True, help="Also remove volumes, backups and secrets.")
@click.option(
    "--packages",
    is_flag=True,
    help="Also remove the Debian packages that agentbox installed and nothing else needs.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be removed, with sizes.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def command(cli: CliContext, purge: bool, packages: bool, dry_run: bool, yes: bool) -> None:
    """Remove from this host everything that agentbox made there.

    Boxes of this user are stopped, then containers, networks, images, processes, GC roots and
    store paths, caches, access lists, the dockerd that agentbox started, state directories and the
    Python environment are removed. Volumes, backups and secrets stay unless --purge, Debian
    packages unless --packages. The sources of the checkout stay. What cannot be removed is listed
    (exit code 1); run the command again to go on.
    """
    inventory = Inventory.for_this_user()
    planned = partial(Planner, inventory, purge=purge, packages=packages)
    plan = planned().plan()
    _print_plan(cli, plan)
    if dry_run:
        cli.out.document(_document(plan, [], dry_run=True))
        return
    if not yes and not _confirmed():
        raise AgentboxError(
            "cannot uninstall: not confirmed",
            "Give --yes, or --dry-run to see what would be removed.",
            exit_code=ExitCode.USAGE,
        )
    with _locks(inventory):
        end_orphans(find_orphans())  # what they made meanwhile is in the plan that is performed
        plan = planned(start_daemon=True).plan()
        failed = _remove(cli, plan)
        removed = {item for step in plan.removals if step.name not in failed for item in step.items}
        noted = [item for row in plan.kept for item in row.items]
        if inventory.file.exists():
            present = [item for item in inventory.items() if item not in removed]
            inventory.replace(dict.fromkeys([*present, *noted]))
    if failed:
        cli.out.document(_document(plan, failed))
        raise AgentboxError(
            f"cannot remove {pluralize(len(failed), 'item')}: {', '.join(failed)}",
            "Fix the reasons above, then run the command again; it goes on.",
            exit_code=ExitCode.BAD,
        )
    _finish(cli, inventory, plan)


@contextmanager
def _locks(inventory: Inventory) -> Iterator[None]:
    """Of each box, and of the state root: no command changes a box meanwhile or makes one. Raises
    AgentboxError (exit 7)."""
    with ExitStack() as locks:
        for state in box_states(inventory):
            if state.directory.exists():
                locks.enter_context(state.exclusive_lock(with_root=False))
        if inventory.directory.is_dir():
            locks.enter_context(root_lock(inventory.directory, exclusive=True))
        yield


def _print_plan(cli: CliContext, plan: UninstallPlan) -> None:
    for step in plan.removals:
        cli.out.line(f"remove  {step.kind:<13} {_size(step.size):>9}  {step.name}")
    for checkout in plan.last.checkouts:
        cli.out.line(f"remove  {'environment':<13} {'':>9}  {checkout}/.venv")
    if plan.last.packages:
        cli.out.line(f"remove  {'packages':<13} {'':>9}  {', '.join(plan.last.packages)}")
    for row in plan.kept:
        cli.out.line(f"keep    {row.kind:<13} {_size(row.size):>9}  {row.name} ({row.reason})")


def _size(size: int) -> str:
    return megabytes(size) if size else ""


def _confirmed() -> bool:
    return sys.stdin.isatty() and click.confirm("Remove these?", default=False, err=True)


def _remove(cli: CliContext, plan: UninstallPlan) -> list[str]:
    """Performs the steps; returns the names of those that failed, with the reasons on stderr."""
    failed = []
    for step in plan.removals:
        with cli.out.stage(step.kind) as stage:
            stage.result = step.name
            try:
                step.remove()
            except AgentboxError as error:
                failed.append(step.name)
                stage.result = "failed"
                cli.out.error(error.message)
    return failed


def _finish(cli: CliContext, inventory: Inventory, plan: UninstallPlan) -> None:
    """Becomes a shell, which removes what this program runs from."""
    kept = f"; kept: {', '.join(row.name for row in plan.kept)}" if plan.kept else ""
    text = f"uninstalled: {pluralize(len(plan.removals), 'item')} removed{kept}"
    if cli.json:
        import json

        text = json.dumps(_document(plan, []), sort_keys=True)
    everything = all(row.foreign for row in plan.kept)
    script = last_script(plan.last, str(inventory.directory), done=text, everything=everything)
    sys.stdout.flush()
    os.execv("/bin/sh", ["sh", "-c", script])


def _document(plan: UninstallPlan, failed: list[str], *, dry_run: bool = False) -> dict[str, Any]:
    kept = [{"kind": r.kind, "name": r.name, "size": r.size, "reason": r.reason} for r in plan.kept]
    steps = [{"kind": s.kind, "name": s.name, "size": s.size} for s in plan.removals]
    return {
        "dry_run": dry_run,
        "removed": [step for step in steps if step["name"] not in failed],
        "failed": failed,
        "kept": kept,
        "packages_last": list(plan.last.packages),
        "checkouts": list(plan.last.checkouts),
    }

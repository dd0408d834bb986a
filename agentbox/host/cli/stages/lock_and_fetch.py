"""Stages 4 and 5: a lock that matches the manifest, and its files in the Nix store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentbox.host.cli.context import CliContext
from agentbox.host.cli.stages.cache import host_cache

if TYPE_CHECKING:
    from agentbox.host.packages.lock_ensurer import EnsuredLock
    from agentbox.manifest.load import Manifest


def pin_manifest_skills(cli: CliContext, manifest: Manifest) -> None:
    """Writes the digests of the skills into the lock beside the manifest, if only they differ.
    Needs no network."""
    from agentbox.host.packages.lock_inputs import lock_inputs, manifest_skills
    from agentbox.host.packages.relock import LOCK_NAME, pin_skills

    adjacent = cli.manifest.absolute().parent / LOCK_NAME
    inputs = lock_inputs(manifest, lock=cli.lock, skills=manifest_skills(manifest))
    if changed := pin_skills(adjacent, inputs, base=cli.lock):
        cli.out.note(f"skills pinned in {adjacent.name}: {changed}")


def lock_and_fetch(
    cli: CliContext, manifest: Manifest, *, locked: bool, system: str = ""
) -> EnsuredLock:
    """Re-locks if needed (with `locked`: fails, exit 5), then fetches missing files (exit 4)."""
    from agentbox.host.packages.lock_ensurer import LockEnsurer
    from agentbox.host.packages.lock_inputs import host_system

    with host_cache() as cache:
        ensurer = LockEnsurer(
            manifest=manifest,
            manifest_path=cli.manifest,
            system=system or host_system(),
            cache=cache,
            progress=cli.out.progress(),
            locked=locked,
            report=cli.out.note,
        )
        with cli.out.stage("lock") as stage:
            ensured = ensurer.ensure_lock()
            stage.result = "unchanged" if ensured.changes is None else ensured.changes.summary
        with cli.out.stage("fetch") as stage:
            ensured, fetched = ensurer.fetch_files(ensured)
            stage.result = fetched.summary if fetched.added else "unchanged"
    return ensured

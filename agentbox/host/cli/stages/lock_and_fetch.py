"""Stages 4 and 5: a lock that matches the manifest, and its files in the Nix store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentbox.host.cli.context import CliContext
from agentbox.host.cli.stages.cache import host_cache

if TYPE_CHECKING:
    from agentbox.host.packages.lock_ensurer import EnsuredLock
    from agentbox.manifest.load import Manifest


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

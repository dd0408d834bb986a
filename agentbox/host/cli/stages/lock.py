"""Stages 4 and 5: a lock that fits the manifest, and its files in the Nix store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentbox.host.cli.context import Cli
from agentbox.host.cli.stages.cache import host_cache

if TYPE_CHECKING:
    from agentbox.host.packages.bring import Fitting
    from agentbox.manifest.load import Manifest


def lock_and_fetch(cli: Cli, manifest: Manifest, *, locked: bool, system: str = "") -> Fitting:
    """Locks again if the lock does not fit (with `locked`: refuses, exit 5), then fetches what is missing (exit 4)."""
    from agentbox.host.packages.bring import Bringer
    from agentbox.host.packages.wanted import host_system

    with host_cache() as cache:
        bringer = Bringer(
            manifest=manifest, manifest_path=cli.manifest, system=system or host_system(),
            cache=cache, progress=cli.out.progress(), locked=locked, say=cli.out.note,
        )  # fmt: skip
        with cli.out.stage("lock") as stage:
            fitting = bringer.fitting_lock()
            stage.said = "unchanged" if fitting.changes is None else fitting.changes.summary
        with cli.out.stage("fetch") as stage:
            fitting, fetched = bringer.fetched(fitting)
            stage.said = fetched.summary if fetched.added else "unchanged"
    return fitting

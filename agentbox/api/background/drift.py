"""Drift while the box runs: posture and mounted manifest, compared again every minute.

Drift is reported once, as an event of the journal, when it appears, changes and disappears;
`/health` and the gauge show it while it lasts. `/ready` does not fall: the operator must change the
container.
"""

import asyncio
from collections.abc import Sequence

from prometheus_client import Gauge

from agentbox.api.background.mounted_manifest import INVALID, ManifestComparison, MountedManifest
from agentbox.api.boot_facts import BootFacts
from agentbox.api.plan_source import PlanSource
from agentbox.box.posture.drift import posture_drift
from agentbox.box.posture.promised import promised_controls
from agentbox.box.supervision.boot_event_log import BootEventLog
from agentbox.box.supervision.boot_record import PostureDrift
from agentbox.core.background.daemon_threads import DaemonThreadRunner
from agentbox.core.background.tasks import log_failures
from agentbox.core.paths import Paths

INTERVAL_SECONDS = 55.0  # plus the comparison on a busy machine: reported within a minute
POSTURE, MANIFEST, CONTAINER = "posture", "manifest", "container"
_DEADLINE = 20.0  # a hanging mount must not hide the rest


class DriftWatcher:
    """Runs from `start` to `stop`; `rows` is the current drift, that of the boot until the first
    check.
    """

    def __init__(
        self, plans: PlanSource, paths: Paths, boot: BootFacts, gauge: Gauge, log: BootEventLog
    ) -> None:
        self._plans, self._paths, self._boot = plans, paths, boot
        self._gauge, self._log = gauge, log
        self._manifest = MountedManifest(plans, paths)
        self._measure: DaemonThreadRunner[tuple[PostureDrift, ...]] = DaemonThreadRunner("posture")
        self._compare: DaemonThreadRunner[ManifestComparison] = DaemonThreadRunner(
            "mounted-manifest"
        )
        self._check_now = asyncio.Event()
        self._job: asyncio.Task[None] | None = None
        self.rows = boot.drift
        self._lasting = tuple(row for row in self.rows if row.control == CONTAINER)
        self._keys: dict[str, tuple[str, ...]] = {}
        for control in (
            *promised_controls(plans.current, paths, boot.target),
            POSTURE,
            MANIFEST,
            CONTAINER,
        ):
            gauge.labels(control).set(0)
        self._publish(self.rows)

    def start(self) -> None:
        self._job = asyncio.ensure_future(self._run())
        self._job.add_done_callback(log_failures("drift watcher"))

    async def stop(self) -> None:
        """Idempotent."""
        job, self._job = self._job, None
        if job is not None:
            job.cancel()
            await asyncio.wait({job})

    def wake(self) -> None:
        """Checks now, for example after the manifest was applied."""
        self._check_now.set()

    async def _run(self) -> None:
        while True:
            await self.check()
            try:
                async with asyncio.timeout(INTERVAL_SECONDS / self._boot.hooks.clock_scale):
                    await self._check_now.wait()
            except TimeoutError:
                continue
            self._check_now.clear()

    async def check(self) -> None:
        """Compares once. What cannot be compared counts as drift."""
        posture = await self._posture()
        compared = await self._mounted()
        self._report_posture(posture)
        self._report_manifest(compared)
        self._publish((*self._lasting, *compared.rows(MANIFEST), *posture))

    async def _posture(self) -> tuple[PostureDrift, ...]:
        plan, boot = self._plans.current, self._boot
        try:
            async with asyncio.timeout(_DEADLINE):
                return await self._measure(
                    lambda: posture_drift(plan, self._paths, boot.landlock_abi, boot.target)
                )
        except (OSError, TimeoutError) as error:
            return (PostureDrift(POSTURE, "measured", f"cannot be measured: {error or 'timeout'}"),)

    async def _mounted(self) -> ManifestComparison:
        try:
            async with asyncio.timeout(_DEADLINE):
                return await self._compare(self._manifest.compare)
        except TimeoutError:
            return ManifestComparison(
                self._plans.current.digests.manifest, {INVALID: ()}, "cannot be read: timeout"
            )

    def _report_posture(self, posture: Sequence[PostureDrift]) -> None:
        previous = {
            row.control: row for row in self.rows if row.control not in (MANIFEST, CONTAINER)
        }
        for row in posture:
            if previous.pop(row.control, None) != row:
                self._log.emit(
                    "PostureDrift", control=row.control, expected=row.expected, found=row.found
                )
        for row in previous.values():
            self._log.emit(
                "PostureChecked", control=row.control, expected=row.expected, found=row.expected
            )

    def _report_manifest(self, compared: ManifestComparison) -> None:
        if compared.keys == self._keys:
            return
        self._keys = compared.keys
        for kind, keys in compared.keys.items():
            self._log.emit(
                "ManifestDrift",
                level=compared.level(kind),
                keys=list(keys),
                source="manifest",
                **{"class": kind},
            )
        if not compared.keys:
            self._log.emit(
                "ManifestDrift", level="info", keys=[], source="manifest", **{"class": ""}
            )

    def _publish(self, rows: tuple[PostureDrift, ...]) -> None:
        for control in {row.control for row in self.rows} - {row.control for row in rows}:
            self._gauge.labels(control).set(0)
        for row in rows:
            self._gauge.labels(row.control).set(1)
        self.rows = rows

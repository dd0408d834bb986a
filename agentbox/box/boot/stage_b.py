"""Stage B continues from the record of Stage A."""

from collections.abc import Mapping
from pathlib import Path

from agentbox.box.boot.context import Context
from agentbox.box.boot.errors import BootError
from agentbox.box.supervision.boot_record import load_plan, read_boot_record
from agentbox.core.paths import Paths


def resume(paths: Paths, env: Mapping[str, str]) -> Context:
    """The context of the running boot. Raises BootError when Stage A left no record."""
    record = read_boot_record(paths)
    if record is None:
        raise BootError("cannot continue the boot: boot.json is missing", "Restart the box.")
    plan = record.load_plan()
    drifted = Path(record.plan) == paths.drift_plan
    return Context(
        paths=paths,
        env=env,
        log=record.log(paths),
        baked=load_plan(paths.plan) if drifted else plan,
        plan=plan,
        plan_path=Path(record.plan),
        supervisord_conf=Path(record.supervisord_conf),
        probes_path=paths.drift_probes if drifted else paths.probes,
        started=record.started,
        strict=record.strict,
        landlock_abi=record.landlock_abi,
        posture=record.posture,
        previous=record.previous,
        hooks=record.hooks,
        optional_missing=record.optional_missing,
    )

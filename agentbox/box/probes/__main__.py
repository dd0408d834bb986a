"""`python -m agentbox.box.probes [--json]`: runs every probe of the running box, of boot and after
the seal.

`agentbox verify --probes` runs it inside the box. Exits 1 when a required probe fails.
"""

import json
import sys
from dataclasses import asdict
from typing import Any, Literal

from agentbox.box.probes.suite import run_probes
from agentbox.box.supervision.boot_record import load_plan, read_boot_record
from agentbox.core.paths import Paths
from agentbox.plan.model import Plan

_STAGES: tuple[Literal["boot", "deep"], ...] = ("boot", "deep")
_TOTAL_SECONDS = 600.0


def results(plan: Plan, paths: Paths) -> list[dict[str, Any]]:
    """Rows `{id, feature, passed, required, ms, detail, stage}` in the order of the plan, the stage
    boot first.
    """
    return [
        {**asdict(result), "stage": stage}
        for stage in _STAGES
        for result in run_probes(plan, paths, stage, total_seconds=_TOTAL_SECONDS)
    ]


def _line(row: dict[str, Any]) -> str:
    outcome = "passed" if row["passed"] else "FAILED" if row["required"] else "failed, optional"
    return f"{row['id']:<32} {outcome:<7} {row['ms']:8.1f} ms  {row['detail']}".rstrip()


def main() -> int:
    """Returns the exit code."""
    paths = Paths.for_this_process()
    record = read_boot_record(paths)
    rows = results(record.load_plan() if record else load_plan(paths.plan), paths)
    if "--json" in sys.argv[1:]:
        print(json.dumps(rows))
    else:
        print("\n".join(map(_line, rows)))
    return int(any(row["required"] and not row["passed"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())

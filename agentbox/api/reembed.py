"""`python -I -m agentbox.api.reembed [--json]`: recomputes the vectors of the memory slot with the
model of this image.

Run in the box by `agentbox memory reembed`. It may be killed and run again. stdout: a line per
commit, then the summary.
"""

import asyncio
import json
import sys
from dataclasses import asdict

from agentbox.adapters.memory.reembed import ReembedReport, reembed
from agentbox.adapters.runtime.adapter import slot_config
from agentbox.box.supervision.boot_record import load_plan, read_boot_record
from agentbox.box.supervision.slot_credentials import slot_secrets
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths


def summary(report: ReembedReport) -> str:
    """The summary of a run."""
    if report.old == report.new:
        return f"nothing to do: the vectors are those of {report.new}"
    before = f", {report.resumed} were done before" if report.resumed else ""
    return (
        f"rewrote the vectors of {report.rewritten} entries from {report.old} to "
        f"{report.new}{before}"
    )


def main() -> int:
    """Exits 0 once every vector is rewritten; else with one sentence on stderr."""
    paths, as_json = Paths.for_this_process(), "--json" in sys.argv[1:]

    def report_progress(done: int, total: int) -> None:
        print(f"{done} of {total} entries", file=sys.stderr if as_json else sys.stdout, flush=True)

    try:
        record = read_boot_record(paths)
        plan = record.load_plan() if record else load_plan(paths.plan)
        cfg = slot_config(plan, paths, "memory", slot_secrets(paths, plan.slots["memory"].options))
        report = asyncio.run(reembed(cfg, report_progress))
    except AgentboxError as error:
        print(*filter(None, (error.message, error.hint)), sep="\n", file=sys.stderr, flush=True)
        return int(error.exit_code)
    print(json.dumps(asdict(report), sort_keys=True) if as_json else summary(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""`upgrade --rehearse`: the new generation is tried on a copy of the state, in a throw-away box,
while the present one works.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.stages.rehearsal import rehearsal_box
from agentbox.host.cli.stages.trial_checks import TrialFailed
from agentbox.host.engines.readiness import query_ready
from agentbox.host.restore import new_state

if TYPE_CHECKING:
    from agentbox.client.state_report import StateReport
    from agentbox.host.engines.base import Engine, StartSpec
    from agentbox.host.engines.state import BoxRecord

_STORES = "agentbox.api.stores"


def rehearse_upgrade(
    cli: CliContext, engine: Engine, spec: StartSpec, last: BoxRecord
) -> tuple[StateReport, list[str]]:
    """What the new generation showed, and the stores that it migrated. Raises AgentboxError: exit 6
    if it is not good.
    """
    from agentbox.api.stores import moving

    table = cli.load_manifest().usable.upgrade
    with rehearsal_box(cli, engine, spec) as rehearsal:
        with cli.out.stage("copy") as stage:
            noted = new_state.copy_live(
                engine, rehearsal.shot(new_state.MODULE), (last.name, cli.state()), last.volumes
            )
            numbers = {name: int(row["migration"]) for name, row in noted["stores"].items()}
            doing = "read the migrations of the new release"
            known = json.loads(engine.run_once(rehearsal.shot(_STORES, "known"), doing))
            moved = moving(numbers, known)
            if moved:
                argument = json.dumps({"generation": 0, "stores": moved})
                engine.run_once(rehearsal.shot(_STORES, "copy", argument), "copy the stores")
            stage.result = f"to migrate: {', '.join(moved) or 'none'}"
        with cli.out.stage("trial") as stage:
            noted["degraded"] = list(query_ready(last.api_url)[1].get("degraded", ()))
            try:
                report = rehearsal.try_out(
                    noted,
                    seconds=cli.timeout or table.trial_seconds,
                    settle=table.settle_seconds,
                    agent=True,
                )
            except TrialFailed as failed:
                raise AgentboxError(
                    f"cannot upgrade {last.name} as it is now: the new generation is not good: "
                    f"{failed}",
                    "It was a rehearsal: the box was not touched. Change the manifest or the "
                    "release.",
                    exit_code=ExitCode.ENGINE,
                ) from failed
            stage.result = f"ready for {table.settle_seconds} s, held"
    return report, moved

"""A backup of a real box below a prefix: supervisord starts the confined program, which ends when it
is done; a kill in the middle leaves no snapshot.
"""

import os
import signal
from dataclasses import replace

import pyrage
from helpers import until
from sealed_box import Sealed, plan, started
from support import tables

from agentbox.plan import backup
from agentbox.plan.model import Plan
from agentbox.plan.names import BACKUP

IDENTITY = pyrage.x25519.Identity.generate()


def plan_with_backups(**changes: object) -> Plan:
    """The program and its ruleset as in every box."""
    made = plan()
    values = {"recipients": (str(IDENTITY.to_public()),), "min_free": 1 << 20, **changes}
    program = replace(backup.PROGRAM, argv=(made.programs[0].argv[0], *backup.PROGRAM.argv[1:]))
    return replace(
        made,
        backup=tables.backup(**values),
        programs=(*made.programs, program),
        rulesets={BACKUP: backup.RULESET},
    )


def states(box: Sealed) -> str:
    return box.box.supervisor().states()[BACKUP].state


def test_the_program_is_off_until_a_backup_is_made_and_can_be_killed() -> None:
    """It works under its confinement; after a kill nothing of the snapshot is left, the next one is
    made, and the box was ready all the time."""
    with started(plan_with_backups(rate=1 << 20)) as box:
        assert states(box) == "STOPPED"
        box.client.pods.write("big", os.urandom(6 << 20))
        begun = box.client.backups.create(tag="killed")
        until(lambda: states(box) == "RUNNING")
        os.kill(box.pid(BACKUP), signal.SIGKILL)
        until(lambda: box.client.backups.get(begun.id).state == "failed")
        assert not list(box.box.paths.backups.glob("*.json"))
        box.client.pods.delete("big")

        begun = box.client.backups.create(tag="whole")
        until(lambda: box.client.backups.get(begun.id).state in ("created", "failed"))
        made = box.client.backups.get(begun.id)
        assert (made.state, made.reason) == ("created", "")
        assert made.head is not None
        assert {"agents", "beads", "pods", "memory", "events"} <= set(made.head.counts)
        assert states(box) == "EXITED"
        assert box.ready()
        failed = box.client.events.read(since=-1, types=("backup.failed",)).events
        assert [event.data["reason"] for event in failed] == ["killed"]

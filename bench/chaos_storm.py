"""Upgrades of one box of the process engine, half of them bad: what it answers afterwards."""

import random
import time
from collections import Counter
from pathlib import Path

from cli_box import CliBox
from measure import Claim
from support.filled_box import answers, fill
from support.release_tree import make_release

from agentbox.client import BoxClient

PORT = 29290
BEADS = "agentbox/adapters/beads/sqlite/schema.py"
BAD = {
    "never ready": {"agentbox/box/boot/main.py": '\nraise SystemExit("no")\n'},
    "loses a bead": {
        BEADS: '\nMIGRATIONS = (*MIGRATIONS, "DELETE FROM tags; DELETE FROM beads;")\n'
    },
    "migration fails": {
        BEADS: '\nMIGRATIONS = (*MIGRATIONS, "CREATE TABLE beads (id TEXT) STRICT;")\n'
    },
}
GOOD = {BEADS: '\nMIGRATIONS = (*MIGRATIONS, "CREATE TABLE added (x INTEGER) STRICT;")\n'}


def storm(folder: Path, rng: random.Random, runs: int) -> tuple[list[Claim], list[str]]:
    """Every second one is bad; a good one is left again with its state."""
    box = CliBox(folder / "box", "agentbox-bench-storm", PORT)
    box.down()
    text = box.manifest.read_text().replace('adapters.pods.use = "off"\n', "")
    box.manifest.write_text(
        text.replace('adapters.memory.use = "off"\n', "") + "upgrade.settle_seconds = 0\n"
    )
    try:
        box.up("--engine", "process")
        with client(box) as caller:
            fill(caller, claim=False)
            seq = caller.generation.show().journal_seq
            before = answers(caller, seq)
        return _storm(box, folder, rng, runs, before, seq)
    finally:
        box.down()


def client(box: CliBox) -> BoxClient:
    return BoxClient(box.url, token=(box.state / "token").read_text().strip())


def _storm(
    box: CliBox, folder: Path, rng: random.Random, runs: int, before: dict[str, str], seq: int
) -> tuple[list[Claim], list[str]]:
    first = box("--json", "generations").json["current"]
    seconds: dict[bool, list[float]] = {True: [], False: []}
    counts, wrong = Counter[str](), []
    for number in range(runs):
        bad = number % 2 == 1
        name = rng.choice(sorted(BAD)) if bad else "good"
        release = make_release(
            folder / f"release-{number}",
            {**(BAD[name] if bad else GOOD), "agentbox/__init__.py": f"\nSTORM = {number}\n"},
        )
        manifest = ("--manifest", str(box.manifest), "--timeout", "25")
        began = time.perf_counter()
        done = release.run(*manifest, "upgrade", environ=box.environ())
        seconds[bad].append(time.perf_counter() - began)
        counts[name] += 1
        if done.returncode != (6 if bad else 0):
            wrong.append(f"storm: {number} ({name}) ended with {done.returncode}: {done.stderr}")
        if not bad:
            back = box("rollback", str(first), "--state", "--yes", timeout=300)
            if back.code:
                wrong.append(f"storm: rollback {number} ended with {back.code}: {back.err}")
        if (now := box("--json", "generations").json["current"]) != first:
            wrong.append(f"storm: after {number} ({name}) generation {now} runs")
    with client(box) as caller:
        after = answers(caller, seq)
    wrong += [f"storm: {name} changed" for name in before if after.get(name) != before[name]]
    if box("events", "verify").code:
        wrong.append("storm: the journal does not verify")
    where = "a box of the process engine, from the command to its end"
    extra = {"upgrades": runs, "by_kind": dict(counts), "changed_answers": len(wrong)}
    return [
        Claim("storm: good upgrade", "s", seconds[False], None, where, extra=extra),
        Claim("storm: bad upgrade, back again", "s", seconds[True], None, where),
    ], wrong

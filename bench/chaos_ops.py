"""Backups, restores and upgrades under faults: how many of them held, and how long each took.

`python bench/chaos_ops.py [--only NAME] [--seed N] [--runs N]`. Needs root: it mounts small file systems. Exit 1 names each
fault that was not answered as it must be.

damage: a bit is flipped in an archive, a head or the record of a repository; `verify` names that file, and what reads the
snapshot refuses it. disks: a repository on a loop volume that is full, read-only, or answers with EIO; snapshots that are there
stay, the error is a sentence, and the next run is good. clock: days of scheduled backups with a clock that steps; nothing is
pruned that should stay. storm: upgrades, half of them bad; afterwards the box answers what it answered before.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/e2e"))

from chaos_clock import steps
from chaos_disks import disks
from chaos_storm import storm
from measure import Claim, write_results
from support.staged_snapshots import filled, identity

from agentbox.backup.archive.repository import ArchiveRepository
from agentbox.backup.errors import BackupError

SNAPSHOTS = 3
KINDS = {"archive": "s?.tar.zst.age", "head": "s?.json", "record": "repository.json"}


def damage(folder: Path, rng: random.Random, runs: int) -> tuple[list[Claim], list[str]]:
    """`runs` bits of each kind of file."""
    key, recipient = identity()
    filled(folder, recipient, SNAPSHOTS)
    repository = ArchiveRepository(folder / "backups", None)
    claims, wrong = [], []
    for kind, pattern in KINDS.items():
        files = sorted((folder / "backups").glob(pattern))
        seconds, refused, missed = list[float](), 0, len(wrong)
        for number in range(runs):
            path = files[number % len(files)]
            whole = path.read_bytes()
            place, bit = rng.randrange(len(whole)), 1 << rng.randrange(8)
            path.write_bytes(whole[:place] + bytes([whole[place] ^ bit]) + whole[place + 1 :])
            began = time.perf_counter()
            named = {fault.file for fault in repository.verify_all()}
            seconds.append(time.perf_counter() - began)
            if path.name not in named:
                wrong.append(f"damage: bit {bit} of byte {place} of {path.name} is not seen")
            refused += kind != "record" and is_refused(repository, path, key)
            path.write_bytes(whole)
        counts = {"damaged": runs, "not_named": len(wrong) - missed}
        if kind != "record":  # a restore reads the other two
            counts["refused"] = refused
            if refused != runs:
                wrong.append(f"damage: {runs - refused} damaged files of the kind {kind} were read")
        where = f"one bit flipped, {SNAPSHOTS} snapshots"
        claims.append(Claim(f"damage: {kind}", "s", seconds, None, where, extra=counts))
    return claims, wrong


def is_refused(repository: ArchiveRepository, path: Path, key: object) -> bool:
    """Whether what a restore reads of that snapshot ends with an error."""
    try:
        head = repository.get(path.name.partition(".")[0])
        if repository.verify(head.id):
            return True
        with repository.open(head.id, [key]) as members:
            for member in members:
                if member.body is not None:
                    member.body.read()
    except BackupError:
        return True
    return False


Run = Callable[[Path, random.Random, int], tuple[list[Claim], list[str]]]
RUNS: dict[str, tuple[Run, int]] = {
    "damage": (damage, 500),
    "disks": (disks, 20),
    "clock": (steps, 20),
    "storm": (storm, 20),
}


def main() -> int:
    """Every run, or one."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--only", choices=sorted(RUNS))
    arguments.add_argument("--seed", type=int, default=20260301)
    arguments.add_argument(
        "--runs", type=int, help="of each; by default as many as the design asks for"
    )
    chosen = arguments.parse_args()
    wrong = []
    for name in [chosen.only] if chosen.only else RUNS:
        run, count = RUNS[name]
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
            Path(folder).chmod(0o755)  # a box of the process engine reads its release there
            found, said = run(Path(folder), random.Random(chosen.seed), chosen.runs or count)
        for claim in found:
            claim.extra |= {"seed": chosen.seed}
            print(claim.name, claim.extra)
        write_results("chaos_ops", found, only=f"{name}:")
        wrong += said
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

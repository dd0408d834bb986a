"""A repository on a small loop volume that fails while a snapshot is written."""

import fcntl
import os
import random
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from measure import Claim
from support.full_disk import fill
from support.staged_snapshots import cut_at, identity, stage

from agentbox.backup.archive.repository import ArchiveRepository
from agentbox.backup.errors import BackupError

SIZE = 400_000  # bytes of a snapshot
VOLUME = 16 << 20


class Volume:
    """ext4 on a loop device, whose file is in memory and can be sealed: each write is an error then."""

    def __init__(self, folder: Path) -> None:
        self.mount = folder
        self._memory = os.memfd_create("volume", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        os.truncate(self._memory, VOLUME)

    @property
    def file(self) -> str:
        return f"/proc/{os.getpid()}/fd/{self._memory}"

    def attach(self) -> None:
        run("mount", "-o", "loop", self.file, str(self.mount))

    def break_disk(self) -> None:
        """From now on the device answers writes with EIO."""
        fcntl.fcntl(self._memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)

    def repair(self) -> None:
        """Another disk with what the broken one has, checked as an operator does."""
        run("umount", str(self.mount))
        broken, fixed = self._memory, Volume(self.mount)
        assert os.sendfile(fixed._memory, broken, 0, VOLUME) == VOLUME
        self._memory = fixed._memory
        os.close(broken)
        subprocess.run(["e2fsck", "-fy", self.file], check=False, capture_output=True)
        self.attach()

    def close(self) -> None:
        run("umount", str(self.mount))
        os.close(self._memory)


@contextmanager
def volume(folder: Path) -> Iterator[Volume]:
    """One for one fault."""
    folder.mkdir(parents=True)
    made = Volume(folder)
    run("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", made.file)
    made.attach()
    try:
        yield made
    finally:
        made.close()


def full(made: Volume, rng: random.Random) -> None:
    """All but a part of what a snapshot takes."""
    ballast = made.mount / "ballast"
    fill(ballast)
    os.truncate(ballast, max(0, ballast.stat().st_size - rng.randrange(SIZE)))


def read_only(made: Volume, _rng: random.Random) -> None:
    """As the kernel does after an error, or an operator by mistake."""
    run("mount", "-o", "remount,ro", str(made.mount))


def failing(made: Volume, _rng: random.Random) -> None:
    """What was written before stays; nothing more reaches the disk."""
    made.break_disk()


def unfull(made: Volume) -> None:
    (made.mount / "ballast").unlink()


def writable(made: Volume) -> None:
    run("mount", "-o", "remount,rw", str(made.mount))


def sound(made: Volume) -> None:
    made.repair()


FAULTS: dict[str, tuple[Callable[[Volume, random.Random], None], Callable[[Volume], None]]] = {
    "ENOSPC": (full, unfull),
    "read-only": (read_only, writable),
    "EIO": (failing, sound),
}


def disks(folder: Path, rng: random.Random, runs: int) -> tuple[list[Claim], list[str]]:
    """`runs` of each fault."""
    claims, wrong = [], []
    for name, (fault, repair) in FAULTS.items():
        seconds, reasons = [], Counter[str]()
        for number in range(runs):
            began = time.perf_counter()
            with volume(folder / f"{name}{number}") as made:
                said, why = hold(made, rng, fault, repair, number)
            seconds.append(time.perf_counter() - began)
            reasons[why] += 1
            wrong += [f"disks: {name} {number}: {sentence}" for sentence in said]
        counts = {"faults": runs, "reasons": dict(reasons)}
        where = f"ext4 of {VOLUME >> 20} MiB on a loop device; the whole round"
        claims.append(Claim(f"disks: {name}", "s", seconds, None, where, extra=counts))
    return claims, wrong


def hold(
    made: Volume,
    rng: random.Random,
    fault: Callable[[Volume, random.Random], None],
    repair: Callable[[Volume], None],
    number: int,
) -> tuple[list[str], str]:
    """What was wrong, and the reason that the failed run gave."""
    key, recipient = identity()
    repository = ArchiveRepository(made.mount / "backups", (recipient,))
    elsewhere = made.mount.with_suffix(".staged")
    repository.write(stage(elsewhere, cut_at(1), size=1000))
    repository.write(stage(elsewhere, cut_at(2), size=1000))
    run("sync", "--file-system", str(made.mount))
    third = stage(elsewhere, cut_at(3), size=SIZE, seed=number)
    fault(made, rng)
    wrong, why = [], "it was written"
    try:
        repository.write(third, min_free=-(1 << 30))
    except BackupError as error:
        why = error.reason
        if not error.message.startswith("cannot make a backup: ") or not error.hint:
            wrong.append(f"no sentence: {error.message}")
    repair(made)
    repository.clean()
    ids = [head.id for head in repository.list()]
    expected = ["s1", "s2", "s3"] if why == "it was written" else ["s1", "s2"]
    if ids != expected:
        wrong.append(f"{ids} are there in place of {expected}")
    wrong += [f"damaged: {fault}" for fault in repository.verify_all()]
    if "s3" not in ids:
        repository.write(third)
    if repository.verify_all() or not is_whole(repository, key):
        wrong.append("the next run is not good")
    return wrong, why


def is_whole(repository: ArchiveRepository, key: object) -> bool:
    """Each snapshot is read to its end."""
    for head in repository.list():
        with repository.open(head.id, [key]) as members:
            if sum(member.kind == "file" for member in members) != len(head.members):
                return False
    return True


def run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)

"""The log of a box without a container engine is bounded, and read across its rotation."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.ports import free_port
from support.prefix_box import PrefixBox, box_program, default_programs, make_plan

from agentbox.box.supervision.log_rotation import MAX_BYTES, rotate, rotated_path
from agentbox.core.paths import Paths
from agentbox.host.engines.process.log_file import read_lines
from agentbox.plan.supervisord_files import boot_log, supervisord_pid

# A program of the box that prints numbered lines without end, and rotates as the API does.
CHATTY = """
import sys
from agentbox.core.paths import Paths
from agentbox.box.supervision.log_rotation import rotate
from agentbox.box.supervision.notify import notify
paths = Paths.for_this_process()
notify(paths, sys.argv[1])
for number in range(30_000):
    print(f"line {number}", flush=True)
    if number % 50 == 0:
        rotate(paths, 100_000)
print("the last line", flush=True)
import time
while True:
    time.sleep(60)
"""


@pytest.fixture
def box() -> Iterator[PrefixBox]:
    with PrefixBox() as made:
        yield made


def test_what_programs_print_is_bounded_and_nothing_is_lost_meanwhile(box: PrefixBox) -> None:
    """A real supervisord opens the new file; two files are stored, and together they end with every
    line in order."""
    port = free_port()
    box.script("chatty.py", CHATTY)
    box.install(
        make_plan(port, (*default_programs(port), box_program("chatty", 50, script="chatty.py")))
    )
    box.start({"BOX_TOKEN": "a-real-token"})
    log = boot_log(box.paths)
    box.wait_until(  # in the renamed file, if supervisord had not opened the new one before
        lambda: log.exists() and "the last line" in read_lines(log, follow=False, lines=None),
        description="all was printed",
    )
    assert log.stat().st_size + rotated_path(log).stat().st_size < 300_000
    assert log.stat().st_mode & 0o777 == 0o600
    numbers = [
        int(line.split()[1])
        for line in read_lines(log, follow=False, lines=None)
        if line.startswith("line ")
    ]
    assert len(numbers) > 5_000
    assert numbers == list(range(numbers[0], 30_000))


def test_a_log_that_supervisord_does_not_write_stays(tmp_path: Path) -> None:
    """Small, in a container, or of a program that was started by hand."""
    paths = Paths(tmp_path)
    assert not rotate(paths)
    boot_log(paths).write_bytes(bytes(MAX_BYTES))
    assert not rotate(paths)
    supervisord_pid(paths).parent.mkdir(parents=True)
    supervisord_pid(paths).write_text(str(os.getpid()))
    assert not rotate(paths)
    assert not rotate(Paths(), 0)


def test_a_reader_that_follows_goes_on_in_the_new_file(tmp_path: Path) -> None:
    """What was appended to the old file before is first."""
    log = tmp_path / "boot.log"
    log.write_text("one\n")
    seen: list[str] = []
    reading = read_lines(log, follow=True, lines=None)
    seen.append(next(reading))
    with log.open("a") as stream:
        stream.write("two\n")
    log.replace(rotated_path(log))
    log.write_text("three\n")
    reader = threading.Thread(target=lambda: seen.extend((next(reading), next(reading))))
    reader.start()
    reader.join(10)
    assert seen == ["one", "two", "three"]
    assert list(read_lines(log, follow=False, lines=2)) == ["two", "three"]

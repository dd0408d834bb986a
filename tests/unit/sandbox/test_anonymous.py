"""Shared anonymous memory has a most, also where no process has its pages in a table any more."""

import sys

from support.confined_process import EVERYWHERE, run_json

from agentbox.core.linux.landlock import PathRule
from agentbox.sandbox.base_grants import BASE_GRANTS
from agentbox.sandbox.confinement import Confinement

MIB = 1 << 20
MEMORY = 64 * MIB
FREE = Confinement(grants=(EVERYWHERE,))
USUAL = Confinement(
    grants=(
        *BASE_GRANTS,
        *(PathRule(path, "rlx") for path in ("/usr", "/bin", "/opt", sys.prefix, sys.base_prefix)),
    )
)
FLOOD = """
import mmap
SIZE = 4 << 20
def hidden(forget):
    block = mmap.mmap(-1, SIZE)
    for at in range(0, SIZE, mmap.PAGESIZE): block[at] = 1
    forget(block)
    return block
def flood(forget, most=40):
    made = []
    try:
        while len(made) < most: made.append(hidden(forget))
    except OSError as error: return made, errno.errorcode[error.errno]
    return made, "passed"
"""


def flooded(script: str) -> dict[str, object]:
    return run_json(FLOOD + script, FREE, memory=MEMORY)


def test_pages_that_left_the_tables_count() -> None:
    """They have half as much again as its memory; where they are unmapped there is capacity again."""
    found = flooded("""
made, why = flood(lambda block: block.madvise(mmap.MADV_DONTNEED))
count, still = len(made), made[0][0]
for one in made: one.close()
said(why=why, count=count, still=still, again=len(flood(lambda block: None)[0]))
""")
    assert found == {"why": "ENOMEM", "count": 24, "still": 1, "again": 24}


def test_a_mapping_of_which_a_page_is_left_counts_whole() -> None:
    """All pages exist as long as one is mapped, in whatever process."""
    found = flooded("""
import ctypes
unmap = ctypes.CDLL(None).munmap
def cut(block):
    at = ctypes.addressof(ctypes.c_char.from_buffer(block))
    assert unmap(ctypes.c_void_p(at + mmap.PAGESIZE), ctypes.c_size_t(SIZE - mmap.PAGESIZE)) == 0
made, why = flood(cut)
said(why=why, count=len(made))
""")
    assert found == {"why": "ENOMEM", "count": 24}


def test_private_memory_and_short_lived_shared_memory_have_no_such_bound() -> None:
    """Changes are counted again, and what one process alone writes belongs to another limit."""
    found = flooded("""
for _ in range(100): mmap.mmap(-1, SIZE).close()
private = [mmap.mmap(-1, SIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) for _ in range(40)]
said(private=len(private))
""")
    assert found == {"private": 40}


def test_the_device_of_zeros_gives_no_shared_memory() -> None:
    """A shared mapping needs a descriptor that is open for writing, by whatever name; one for
    reading returns zeros and private pages."""
    found = run_json("""
import mmap
SIZE = 4 << 20
def shared(path):
    with open(path, "r+b", 0) as device: mmap.mmap(device.fileno(), SIZE)
device = open("/dev/zero", "rb", 0)
names = "/dev/zero", f"/proc/self/fd/{device.fileno()}", f"/dev/../proc/thread-self/fd/{device.fileno()}"
seen = mmap.mmap(device.fileno(), SIZE, mmap.MAP_SHARED, mmap.PROT_READ)
zeros = not any(seen[at] for at in range(0, SIZE, mmap.PAGESIZE))
made = [line.split()[-1] for line in open("/proc/self/maps") if "/dev/zero" in line]
own = mmap.mmap(device.fileno(), SIZE, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
own[0] = 1
said(shared=[tried(lambda: shared(name)) for name in names], read=len(device.read(9)), zeros=zeros, made=made, own=own[0])
""", USUAL, memory=MEMORY)  # fmt: skip
    # A shared object is named "/dev/zero (deleted)": with the device alone there is none.
    assert found == {
        "shared": ["EACCES"] * 3,
        "read": 9,
        "zeros": True,
        "made": ["/dev/zero"],
        "own": 1,
    }

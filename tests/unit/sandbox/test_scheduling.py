"""The scheduling of threads, by their number."""

import os

from support.confined_process import EVERYWHERE, run_json

from agentbox.sandbox.confinement import Confinement

FREE = Confinement(grants=(EVERYWHERE,))
# Numbers of the calls: asm/unistd_64.h, asm-generic/unistd.h.
BEFORE = """
policy_call, param_call = (144, 142) if os.uname().machine == "x86_64" else (119, 118)
def number(value): return ctypes.addressof(value)
plain, high = ctypes.c_int(0), ctypes.c_int(1)
ready, over = threading.Event(), threading.Event()
thread = threading.Thread(target=lambda: (ready.set(), over.wait())); thread.start(); ready.wait()
def policy(of, which, priority=plain): return call(policy_call, of, which, number(priority))
def param(of, priority=plain): return call(param_call, of, number(priority))
"""


def test_what_a_thread_has_may_be_set_again() -> None:
    """As a library does for each of its threads; the first of the process and another."""
    found = run_json(
        f"{BEFORE}said(first=policy(os.getpid(), 0), other=policy(thread.native_id, 0), same=param(thread.native_id)); over.set()",
        FREE,
        pids=64,
    )
    assert found == {"first": "passed", "other": "passed", "same": "passed"}


def test_nothing_changes_and_nobody_else_is_touched() -> None:
    """Another policy or priority, an unused number, and a process that is not its own."""
    found = run_json(
        f"{BEFORE}said(batch=policy(thread.native_id, 3), real=policy(thread.native_id, 1, high),"
        f" high=param(thread.native_id, high), stranger=policy({os.getpid()}, 0), nobody=policy(4194303, 0),"
        " nowhere=call(policy_call, thread.native_id, 0, 0)); over.set()",
        FREE,
        pids=64,
    )
    assert found == {
        **dict.fromkeys(("batch", "real", "high", "stranger", "nobody"), "EPERM"),
        "nowhere": "EFAULT",
    }


def test_memory_that_ends_within_the_priority() -> None:
    """The reaper continues, and answers the next call."""
    script = f"""{BEFORE}
import mmap
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype, libc.mmap.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
pages = libc.mmap(None, 8192, 3, 0x22, -1, 0); libc.munmap(pages + 4096, 4096)
end = pages + 4094
said(policy=call(policy_call, os.getpid(), 0, end), param=call(param_call, os.getpid(), end), after=policy(os.getpid(), 0))
over.set()
"""
    assert run_json(script, FREE, pids=64) == {
        "policy": "EFAULT",
        "param": "EFAULT",
        "after": "passed",
    }

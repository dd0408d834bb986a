"""Signals that arrive while a call waits for the reaper."""

import errno

from support.confined_process import EVERYWHERE, run_json

from agentbox.sandbox.confinement import Confinement

FREE = Confinement(grants=(EVERYWHERE,))


def test_a_pipeline_of_a_shell_is_forked_whole() -> None:
    """Its first child ends while it forks the next; the shell has a handler for that."""
    found = run_json(
        """
import subprocess
pipeline = ["dash", "-c", "true | true | true"]
said(codes=sorted({subprocess.run(pipeline, stderr=subprocess.DEVNULL).returncode for _ in range(40)}))
""",
        FREE, pids=64,
    )  # fmt: skip
    assert found == {"codes": [0]}


def test_every_other_handler_is_as_it_was_asked_for() -> None:
    """A program that wants the end of a child to interrupt a call gets that."""
    found = run_json(
        """
heard = []
signal.signal(signal.SIGCHLD, lambda *_: heard.append(1))
libc.read.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)
reading, writing = os.pipe()
child = os.fork()
if child == 0:
    time.sleep(0.3); os._exit(0)
got = libc.read(reading, ctypes.create_string_buffer(1), 1)
said(got=got, why=errno.errorcode[ctypes.get_errno()])
""",
        FREE, pids=64,
    )  # fmt: skip
    assert found == {"got": -1, "why": "EINTR"}


def test_a_handler_that_the_memory_ends_within() -> None:
    """The kernel reports it to the shell; the reaper continues. Number of the call:
    asm/unistd_64.h, asm-generic/unistd.h."""
    inner = """
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype, libc.mmap.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
pages = libc.mmap(None, 8192, 3, 0x22, -1, 0); libc.munmap(pages + 4096, 4096)
number = 13 if os.uname().machine == "x86_64" else 134
print(libc.syscall(number, int(signal.SIGCHLD), ctypes.c_void_p(pages + 4088), None, 8), ctypes.get_errno())
"""
    found = run_json(
        f"""
import pathlib, shutil, subprocess, sys, tempfile
with tempfile.TemporaryDirectory() as folder:
    shell = shutil.copy(pathlib.Path(sys.executable).resolve(), folder + "/dash")
    around = {{"PYTHONHOME": sys.base_prefix}}
    said(**{{name: subprocess.run([shell, "-c", {inner!r}], env=around, text=True, capture_output=True).stdout for name in ("one", "two")}})
""",
        FREE, pids=64,
    )  # fmt: skip
    assert found == dict.fromkeys(("one", "two"), f"-1 {errno.EFAULT}\n")

"""Python prelude for scripts in a confined process: tries operations and prints the results."""

from typing import Final

PROBES: Final = """
import ctypes, errno, json, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *rest):
    found = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(one) for one in rest))
    return errno.errorcode[ctypes.get_errno()] if found < 0 else "passed"
def tried(what):
    try:
        what()
    except OSError as error:
        return errno.errorcode[error.errno]
    return "passed"
def said(**what):
    print(json.dumps(what))
"""
"""`call` makes a system call by number and `tried` calls a function: "passed", or the name of an
errno. `said` prints JSON.
"""

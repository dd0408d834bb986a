"""The init of a PID namespace: what loses its parent there becomes a child of process 1, and stays a zombie until that reaps it."""

import os
import signal
import sys

_SIGNAL_BASE = 128  # a shell's exit code of a command that a signal ended, less the signal's number


def run_under_init() -> None:
    """Where this process is the first of its namespace (a container, `unshare --pid --fork`), it goes on as a child, and the
    first one only reaps, hands on signals and ends as the child does. Call it before any thread is started."""
    if os.getpid() != 1:
        return
    sys.stdout.flush()
    sys.stderr.flush()
    previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    if child := os.fork():
        os._exit(_reap(child))
    os.setpgid(0, 0)  # a terminal's Ctrl-C reaches process 1 alone, which hands it on once
    signal.pthread_sigmask(signal.SIG_SETMASK, previous_mask)


def _reap(child: int) -> int:
    """Until the child has ended: its exit code. Blocked signals reach even process 1, which the kernel spares otherwise."""
    while True:
        signal_number = signal.sigwait(signal.valid_signals())
        if signal_number != signal.SIGCHLD:
            os.kill(child, signal_number)  # a zombie takes it too: nobody else reaps it
            continue
        while status := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG):
            if status.si_pid == child:
                return status.si_status + (_SIGNAL_BASE if status.si_code != os.CLD_EXITED else 0)

"""Init of a PID namespace: orphaned processes become children of process 1, which must reap
them."""

import os
import signal
import sys

_SIGNAL_BASE = 128  # exit code of a command killed by a signal, minus the signal number


def run_under_init() -> None:
    """As PID 1 (a container, `unshare --pid --fork`), forks: the child continues, the parent reaps
    orphans, forwards signals and exits like the child. Call it before starting threads."""
    if os.getpid() != 1:
        return
    sys.stdout.flush()
    sys.stderr.flush()
    previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    if child := os.fork():
        os._exit(_reap(child))
    os.setpgid(0, 0)  # a terminal's Ctrl-C reaches process 1 only, which forwards it once
    signal.pthread_sigmask(signal.SIG_SETMASK, previous_mask)


def _reap(child: int) -> int:
    """Reaps until the child ends; returns its exit code. Signals are blocked and taken by sigwait:
    the kernel does not deliver default actions to process 1."""
    while True:
        signal_number = signal.sigwait(signal.valid_signals())
        if signal_number != signal.SIGCHLD:
            os.kill(child, signal_number)  # safe: an unreaped zombie keeps its pid
            continue
        while status := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG):
            if status.si_pid == child:
                return status.si_status + (_SIGNAL_BASE if status.si_code != os.CLD_EXITED else 0)

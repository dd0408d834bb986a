"""What root may do everywhere, an agent that runs as root may not: clock, interfaces, priorities, names."""

from support.confined_process import EVERYWHERE, run_json

from agentbox.sandbox.confinement import Confinement

OVERRIDE = 1 << 1  # CAP_DAC_OVERRIDE, linux/capability.h


def test_no_capability_is_left_but_that_which_opens_files() -> None:
    """Nor does another program started by root get one. Each attempt writes back the current value."""
    found = run_json(
        """
import fcntl, struct, subprocess
def capabilities(text):
    return {line.split()[0]: int(line.split()[1], 16) for line in text.splitlines() if line.startswith("Cap")}
flags = struct.pack("16sh14x", b"lo", 0)
with socket.socket() as one:
    interface = tried(lambda: fcntl.ioctl(one, 0x8914, fcntl.ioctl(one, 0x8913, flags)))
    mark = tried(lambda: one.setsockopt(socket.SOL_SOCKET, 36, 7))
host = os.uname().nodename.encode()
said(
    own=capabilities(open("/proc/self/status").read()),
    started=capabilities(subprocess.run(["cat", "/proc/self/status"], capture_output=True, text=True).stdout),
    interface=interface, mark=mark, clock=tried(lambda: time.clock_settime(time.CLOCK_REALTIME, time.time())),
    turn=tried(lambda: os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0) - 1)),
    first=tried(lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))),
    name=tried(lambda: socket.sethostname(host)), user=tried(lambda: os.setuid(4242)),
)
""",
        Confinement(grants=(EVERYWHERE,)),
    )
    for which in ("own", "started"):
        sets = found.pop(which)
        assert isinstance(sets, dict)
        assert not any(
            sets[name] & ~OVERRIDE for name in ("CapInh:", "CapPrm:", "CapEff:", "CapAmb:")
        ), (which, sets)
    assert found.pop("turn") == "EACCES"
    assert set(found.values()) == {"EPERM"}, found

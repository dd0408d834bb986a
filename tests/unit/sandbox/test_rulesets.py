"""An agent's own Landlock works, and what the kernel keeps of it is limited."""

from support.confined_process import EVERYWHERE, run_json

from agentbox.core.linux import landlock
from agentbox.core.linux.landlock import PathRule
from agentbox.sandbox.confinement import Confinement
from agentbox.sandbox.syscalls import rulesets
from agentbox.sandbox.syscalls.rulesets import MAX_RULES, RULE_BYTES

MIB = 1 << 20
FREE = Confinement(grants=(EVERYWHERE,))
OWN = """
import os, struct
def done(number, *rest):
    found = libc.syscall(ctypes.c_long(number), *rest)
    if found < 0: raise OSError(ctypes.get_errno(), "")
    return found
def ruleset(): return done(444, struct.pack("=QQ", 0, 2), ctypes.c_long(16), ctypes.c_long(0))
def add(made, port): done(445, ctypes.c_long(made), ctypes.c_long(2), struct.pack("=QQ", 2, port), ctypes.c_long(0))
def restrict(made): done(446, ctypes.c_long(made), ctypes.c_long(0))
def filled(most=100_000):
    made, count = ruleset(), 0
    try:
        while count < most: add(made, count % 65536); count += 1
    except OSError as error: return made, count, errno.errorcode[error.errno]
    return made, count, "passed"
def sandboxed(rules):
    made, _, why = filled(rules)
    if why == "passed":
        child = os.fork()
        if child == 0: os._exit({"passed": 0, "ENOMEM": 1}[tried(lambda: restrict(made))])
        why = ["passed", "ENOMEM"][os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])]
    os.close(made)
    return why
"""


def own(script: str, memory: int) -> dict[str, object]:
    return run_json(f"{OWN}{script}", FREE, memory=memory)


def test_rules_have_a_most() -> None:
    """One ruleset took 65,536 in a twentieth of a second."""
    found = own("""
made, count, why = filled()
other, more, too = filled()
said(count=count, why=why, more=more, too=too)
""", 2048 * MIB)  # fmt: skip
    assert found == {"count": MAX_RULES, "why": "ENOMEM", "more": 0, "too": "ENOMEM"}


def test_a_ruleset_under_way_in_a_socket_keeps_its_rules() -> None:
    """Only once none can exist anywhere there is capacity again."""
    found = own("""
near, far = socket.socketpair()
made, count, _ = filled()
socket.send_fds(near, [b"x"], [made]); os.close(made)
made, hidden, _ = filled(); os.close(made)
os.close(socket.recv_fds(far, 1, 1)[1][0])
made, again, _ = filled()
said(count=count, hidden=hidden, again=again)
""", 2048 * MIB)  # fmt: skip
    assert found == {"count": MAX_RULES, "hidden": 0, "again": MAX_RULES}


def test_copies_of_rules_have_a_most() -> None:
    """Each domain has its own, of all layers: its possible size is charged when it is created."""
    memory = 32 * MIB
    found = own("""
made = [sandboxed(100) for _ in range(20)]
said(passed=made.count("passed"), why=made[-1])
""", memory)  # fmt: skip
    passed = found["passed"]
    assert isinstance(passed, int)
    assert 0 < passed <= memory // rulesets._SHARE // RULE_BYTES // (rulesets.MAX_LAYERS * 100)
    assert found["why"] == "ENOMEM"


def test_a_sandbox_for_each_command_works() -> None:
    """Forty of ten rules at once, as a coding agent creates them."""
    found = own("""
said(version=done(444, None, ctypes.c_long(0), ctypes.c_long(1)), made=sorted({sandboxed(10) for _ in range(40)}))
""", 2048 * MIB)  # fmt: skip
    assert found == {"version": landlock.abi(), "made": ["passed"]}


def test_a_start_asks_for_nothing() -> None:
    """The rules that confine an agent are not its own: its limit is lower than those."""
    confinement = Confinement(grants=(EVERYWHERE, *(PathRule("/usr", "r"),) * 300))
    assert run_json("said(began=True)", confinement, memory=1 * MIB) == {"began": True}

"""From an agent's write to the reader of its stream: how late a line is, and how many lines a second pass."""

import time
from uuid import uuid4

from measure import Claim
from slot_rooms import Room

from agentbox.contracts.orchestrator import AgentSpec

LINES, WARM_UP, LINE = 1000, 100, 200  # bytes of a line
BOUNDS = {True: 2.0, False: 20.0}  # ms an event, of a local class and of an external one
FLOOR = 5000
_SLOW = f"""
import sys, time
for _ in range({LINES + WARM_UP}):
    sys.stdout.write(str(time.monotonic_ns()).ljust({LINE - 1}, ".") + "\\n"); sys.stdout.flush(); time.sleep(0.004)
"""
_FAST = f"""
import sys, time
line = "x" * {LINE - 1} + "\\n"
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end: sys.stdout.write(line * 16); sys.stdout.flush()
"""


async def _lines(found: Room, *argv: str) -> list[tuple[float, bytes]]:
    """Every line that the reader got, and when, in seconds of the monotonic clock."""
    spec = AgentSpec(
        name="lines", argv=("/usr/bin/python3", "-I", "-c", *argv), profile="sandboxed"
    )
    handle = await found.box.orchestrator.spawn(spec, request_id=str(uuid4()))
    lines, rest = [], b""
    async for item in found.box.orchestrator.stream(handle.agent_id):
        if item.kind == "stdout":
            now = time.monotonic()
            *whole, rest = (rest + item.data).split(b"\n")
            lines += [(now, line) for line in whole]
    return lines


async def stream_claims(found: Room, seconds: float) -> tuple[list[Claim], list[str]]:
    """The two numbers of a stream, and a sentence for each miss. The clock of the agent is that of the reader."""
    local = found.use.startswith("local-")
    late = [(at - int(line.rstrip(b".")) / 1e9) * 1000 for at, line in await _lines(found, _SLOW)][
        WARM_UP:
    ]
    fast = await _lines(found, _FAST, str(seconds))
    speed = len(fast) / (fast[-1][0] - fast[0][0])
    where = f"lines of {LINE} bytes, one every 4 ms; a second: as many as the agent can write for {seconds:g} s"
    claim = Claim(
        f"{found.name} stream", "ms", late, BOUNDS[local], where, extra={"per_second": speed, "floor": FLOOR if local else None}
    )  # fmt: skip
    p95, missed = claim.summary()["p95"], []
    if p95 > BOUNDS[local]:
        missed.append(f"{claim.name}: p95 {p95:.1f} ms, at most {BOUNDS[local]:g} are allowed")
    if local and speed < FLOOR:
        missed.append(f"{claim.name}: {speed:.0f} a second, the floor is {FLOOR}")
    return [claim], missed

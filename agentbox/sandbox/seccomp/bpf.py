"""A tiny assembler of the classic BPF that seccomp(2) takes: what a filter of refusals needs, and no more.

Opcodes: linux/bpf_common.h; actions and the layout of `struct seccomp_data`: linux/seccomp.h. Both machines are
little-endian, so the low word of an argument comes first.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

_LOAD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_AT_LEAST: Final = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_ANY_BIT: Final = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_JUMP: Final = 0x05  # BPF_JMP | BPF_JA: over as many steps as its value says
_AND: Final = 0x54  # BPF_ALU | BPF_AND | BPF_K
_RETURN: Final = 0x06  # BPF_RET | BPF_K

ALLOW: Final = 0x7FFF0000
NOTIFY: Final = 0x7FC00000  # SECCOMP_RET_USER_NOTIF: whoever holds the listener answers
KILL: Final = 0x80000000  # the process
_ERRNO: Final = 0x00050000

_NUMBER: Final = 0
_ARCHITECTURE: Final = 4
_ARGUMENTS: Final = 16
_MOST: Final = 4096  # BPF_MAXINSNS
_FAR: Final = 255  # steps, which a test can leave out at most
_FEW: Final = 8  # ranges that are tried one by one


class Step(NamedTuple):
    """`struct sock_filter`: the jumps count the steps that are left out when the test holds, and when it does not."""

    code: int
    holds: int
    fails: int
    value: int


Steps = tuple[Step, ...]


def fail(errno: int) -> int:
    """The action that answers a call with that errno."""
    return _ERRNO | errno


def leave(action: int) -> Steps:
    """The end of the program."""
    return (Step(_RETURN, 0, 0, action),)


def number() -> Steps:
    """The call's number becomes the value looked at."""
    return (Step(_LOAD, 0, 0, _NUMBER),)


def architecture() -> Steps:
    """The call's architecture becomes the value looked at."""
    return (Step(_LOAD, 0, 0, _ARCHITECTURE),)


def argument(index: int, mask: int | None = None) -> Steps:
    """The low word of an argument, of which `mask` leaves some bits, becomes the value looked at."""
    load = Step(_LOAD, 0, 0, _ARGUMENTS + 8 * index)
    return (load,) if mask is None else (load, Step(_AND, 0, 0, mask))


def high(index: int) -> Steps:
    """The high word of an argument becomes the value looked at."""
    return (Step(_LOAD, 0, 0, _ARGUMENTS + 8 * index + 4),)


def when(value: int, body: Steps) -> Steps:
    """`body`, which must end the program or load anew what follows it, when the value looked at is that one."""
    return (Step(_EQUAL, 0, _short(body), value), *body)


def unless(values: Sequence[int], body: Steps) -> Steps:
    """`body` when the value looked at is none of those."""
    tests = [Step(_EQUAL, len(values) - 1 - at + len(body), 0, value) for at, value in enumerate(values)]
    _short((*tests, *body))
    return (*tests, *body)


def when_any_bit(mask: int, body: Steps) -> Steps:
    """`body` when the value looked at has one of those bits."""
    return (Step(_ANY_BIT, 0, _short(body), mask), *body)


def search(bodies: Mapping[int, Steps], otherwise: Steps) -> Steps:
    """The body of the value looked at, or `otherwise`, by a binary search over ranges that go the same way. Each ends the program.

    A kernel runs the program once for each call as it takes it, to remember what passes whatever the arguments are, and a
    test after a test makes that long.
    """
    ranges = [(0, otherwise)]  # where each begins; it ends where the next one begins
    for value in sorted(bodies):
        if ranges[-1][0] == value:
            ranges.pop()
        if not ranges or ranges[-1][1] != bodies[value]:
            ranges.append((value, bodies[value]))
        ranges.append((value + 1, otherwise))
    return _halves(ranges)


def _halves(ranges: Sequence[tuple[int, Steps]]) -> Steps:
    if len(ranges) <= _FEW:
        return _each(ranges)
    middle = len(ranges) // 2
    value, below, above = ranges[middle][0], _halves(ranges[:middle]), _halves(ranges[middle:])
    if len(below) <= _FAR:
        return (Step(_AT_LEAST, len(below), 0, value), *below, *above)
    return (Step(_AT_LEAST, 0, 1, value), Step(_JUMP, 0, 0, len(below)), *below, *above)


def _each(ranges: Sequence[tuple[int, Steps]]) -> Steps:
    """The highest first; a body that several go to is there once, and that of the lowest follows the last test."""
    places: dict[Steps, int] = {}
    length = 0
    for _, body in ranges:
        if body not in places:
            places[body] = length
            length += len(body)
    tests = [Step(_AT_LEAST, at - 1 + places[ranges[at][1]], 0, ranges[at][0]) for at in range(len(ranges) - 1, 0, -1)]
    if any(one.holds > _FAR for one in tests):
        raise ValueError(f"a jump over more than {_FAR} steps")
    return (*tests, *(step for body in places for step in body))


def assemble(parts: Iterable[Steps]) -> bytes:
    """The program as the kernel reads it. Raises ValueError when it is longer than a kernel takes."""
    steps = [step for part in parts for step in part]
    if len(steps) > _MOST:
        raise ValueError(f"a filter of {len(steps)} steps, of at most {_MOST}")
    return b"".join(struct.pack("<HBBI", *step) for step in steps)


def _short(body: Steps) -> int:
    if len(body) > _FAR:
        raise ValueError(f"a jump over more than {_FAR} steps")
    return len(body)

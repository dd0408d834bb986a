"""A minimal assembler of the classic BPF that seccomp(2) takes, limited to what the filters need.

Opcodes: linux/bpf_common.h; actions and the layout of `struct seccomp_data`: linux/seccomp.h. Both
machines are little-endian, so the low word of an argument comes first.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

_LOAD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_GREATER_OR_EQUAL: Final = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_ANY_BIT: Final = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_JUMP: Final = 0x05  # BPF_JMP | BPF_JA: skips as many instructions as its value
_AND: Final = 0x54  # BPF_ALU | BPF_AND | BPF_K
_RETURN: Final = 0x06  # BPF_RET | BPF_K

ALLOW: Final = 0x7FFF0000
NOTIFY: Final = 0x7FC00000  # SECCOMP_RET_USER_NOTIF: the owner of the listener answers
KILL: Final = 0x80000000  # kills the process
_ERRNO: Final = 0x00050000

_NUMBER: Final = 0
_ARCHITECTURE: Final = 4
_ARGUMENTS: Final = 16
_MAX_INSTRUCTIONS: Final = 4096  # BPF_MAXINSNS
_MAX_JUMP: Final = 255  # instructions that a test can skip at most
_MAX_LINEAR: Final = 8  # ranges that are tested one by one


class Instruction(NamedTuple):
    """`struct sock_filter`: the jumps count the instructions to skip if the test succeeds, and if
    it fails.
    """

    code: int
    jump_true: int
    jump_false: int
    value: int


Instructions = tuple[Instruction, ...]


def errno_action(errno: int) -> int:
    """The action that fails a call with that errno."""
    return _ERRNO | errno


def return_action(action: int) -> Instructions:
    """Ends the program."""
    return (Instruction(_RETURN, 0, 0, action),)


def load_number() -> Instructions:
    """Loads the call's number."""
    return (Instruction(_LOAD, 0, 0, _NUMBER),)


def load_architecture() -> Instructions:
    """Loads the call's architecture."""
    return (Instruction(_LOAD, 0, 0, _ARCHITECTURE),)


def load_argument(index: int, mask: int | None = None) -> Instructions:
    """Loads the low word of an argument, masked if `mask` is given."""
    load = Instruction(_LOAD, 0, 0, _ARGUMENTS + 8 * index)
    return (load,) if mask is None else (load, Instruction(_AND, 0, 0, mask))


def load_argument_high(index: int) -> Instructions:
    """Loads the high word of an argument."""
    return (Instruction(_LOAD, 0, 0, _ARGUMENTS + 8 * index + 4),)


def if_equal(value: int, body: Instructions) -> Instructions:
    """Runs `body` if the loaded value is equal; `body` must end the program or load the
    value anew.
    """
    return (Instruction(_EQUAL, 0, _jump_length(body), value), *body)


def unless_any_of(values: Sequence[int], body: Instructions) -> Instructions:
    """Runs `body` if the loaded value is none of those."""
    tests = [
        Instruction(_EQUAL, len(values) - 1 - index + len(body), 0, value)
        for index, value in enumerate(values)
    ]
    _jump_length((*tests, *body))
    return (*tests, *body)


def if_any_bit(mask: int, body: Instructions) -> Instructions:
    """Runs `body` if the loaded value has one of those bits."""
    return (Instruction(_ANY_BIT, 0, _jump_length(body), mask), *body)


def binary_search(bodies: Mapping[int, Instructions], default: Instructions) -> Instructions:
    """Runs the body for the loaded value, or `default`, by a binary search over ranges with one
    body. Each body ends the program.

    The kernel runs the program once per call number when it is installed, to cache what passes
    whatever the arguments are; a linear sequence of tests makes that slow.
    """
    ranges = [(0, default)]  # start of each range, which ends at the next start
    for value in sorted(bodies):
        if ranges[-1][0] == value:
            ranges.pop()
        if not ranges or ranges[-1][1] != bodies[value]:
            ranges.append((value, bodies[value]))
        ranges.append((value + 1, default))
    return _search_halves(ranges)


def _search_halves(ranges: Sequence[tuple[int, Instructions]]) -> Instructions:
    if len(ranges) <= _MAX_LINEAR:
        return _search_linearly(ranges)
    middle = len(ranges) // 2
    value, below, above = (
        ranges[middle][0],
        _search_halves(ranges[:middle]),
        _search_halves(ranges[middle:]),
    )
    if len(below) <= _MAX_JUMP:
        return (Instruction(_GREATER_OR_EQUAL, len(below), 0, value), *below, *above)
    return (
        Instruction(_GREATER_OR_EQUAL, 0, 1, value),
        Instruction(_JUMP, 0, 0, len(below)),
        *below,
        *above,
    )


def _search_linearly(ranges: Sequence[tuple[int, Instructions]]) -> Instructions:
    """Tests the highest range first; shared bodies are emitted once, and that of the lowest range
    follows the last test.
    """
    offsets: dict[Instructions, int] = {}
    length = 0
    for _, body in ranges:
        if body not in offsets:
            offsets[body] = length
            length += len(body)
    tests = [
        Instruction(_GREATER_OR_EQUAL, index - 1 + offsets[ranges[index][1]], 0, ranges[index][0])
        for index in range(len(ranges) - 1, 0, -1)
    ]
    if any(test.jump_true > _MAX_JUMP for test in tests):
        raise ValueError(f"a jump over more than {_MAX_JUMP} instructions")
    return (*tests, *(step for body in offsets for step in body))


def assemble(blocks: Iterable[Instructions]) -> bytes:
    """The program as the kernel reads it. Raises ValueError if it exceeds the kernel's maximum."""
    steps = [step for block in blocks for step in block]
    if len(steps) > _MAX_INSTRUCTIONS:
        raise ValueError(
            f"a filter of {len(steps)} instructions; the maximum is {_MAX_INSTRUCTIONS}"
        )
    return b"".join(struct.pack("<HBBI", *step) for step in steps)


def _jump_length(body: Instructions) -> int:
    if len(body) > _MAX_JUMP:
        raise ValueError(f"a jump over more than {_MAX_JUMP} instructions")
    return len(body)

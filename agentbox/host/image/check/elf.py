"""Reads the fields of an ELF file that the loader uses: class, machine, interpreter, needed
libraries, search paths (elf(5)).
"""

import struct
from dataclasses import dataclass
from pathlib import Path

_MAGIC = b"\x7fELF"
_64_BIT, _LITTLE = 2, 1
_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_DT_NEEDED, _DT_STRTAB, _DT_RPATH, _DT_RUNPATH = 1, 5, 15, 29
MACHINES = {62: "amd64", 183: "arm64"}


@dataclass(frozen=True)
class Elf:
    """`machine` is a Debian arch, or the number as text. `paths` are RPATH and RUNPATH as written,
    with `$ORIGIN`.
    """

    machine: str
    interpreter: str
    needed: tuple[str, ...]
    paths: tuple[str, ...]


def read_elf(file: Path) -> Elf | None:
    """Read a file; None unless it is a 64-bit little-endian ELF, as on every supported Linux."""
    with file.open("rb") as stream:
        if stream.read(6) != _MAGIC + bytes((_64_BIT, _LITTLE)):
            return None
    data = file.read_bytes()
    machine = struct.unpack_from("<H", data, 18)[0]
    segments = list(_segments(data))
    interpreter = next((_text(data, s.offset) for s in segments if s.kind == _PT_INTERP), "")
    tags = [tag for s in segments if s.kind == _PT_DYNAMIC for tag in _dynamic(data, s)]
    strings = next((_file_offset(value, segments) for tag, value in tags if tag == _DT_STRTAB), 0)
    texts = [
        (tag, _text(data, strings + value))
        for tag, value in tags
        if tag in (_DT_NEEDED, _DT_RPATH, _DT_RUNPATH)
    ]
    return Elf(
        machine=MACHINES.get(machine, str(machine)),
        interpreter=interpreter,
        needed=tuple(text for tag, text in texts if tag == _DT_NEEDED),
        paths=tuple(
            path for tag, text in texts if tag != _DT_NEEDED for path in text.split(":") if path
        ),
    )


@dataclass(frozen=True)
class _Segment:
    kind: int
    offset: int
    address: int
    size: int


def _segments(data: bytes) -> list[_Segment]:
    start, entry, count = (
        struct.unpack_from("<Q", data, 32)[0],
        *struct.unpack_from("<HH", data, 54),
    )
    segments = []
    for index in range(count):
        kind, _flags, offset, address, _physical, size = struct.unpack_from(
            "<IIQQQQ", data, start + index * entry
        )
        segments.append(_Segment(kind, offset, address, size))
    return segments


def _dynamic(data: bytes, segment: _Segment) -> list[tuple[int, int]]:
    pairs = struct.iter_unpack(
        "<qQ", data[segment.offset : segment.offset + segment.size // 16 * 16]
    )
    return [(tag, value) for tag, value in pairs if tag]


def _file_offset(address: int, segments: list[_Segment]) -> int:
    for segment in segments:
        if segment.kind == _PT_LOAD and segment.address <= address < segment.address + segment.size:
            return address - segment.address + segment.offset
    return 0


def _text(data: bytes, offset: int) -> str:
    return data[offset : data.index(b"\0", offset)].decode()

"""Checks whether a file is executable here: an ELF file of this machine whose interpreter exists,
or a script whose interpreter exists.
"""

import os
import struct
from pathlib import Path

_ELF_MACHINES = {"x86_64": 62, "aarch64": 183}  # e_machine, <elf.h>
_PT_INTERP = 3
_HEAD = 4096


def executable_fault(path: Path) -> str:
    """Empty when the kernel of this machine could start it. 64-bit little-endian ELF only (amd64,
    arm64).
    """
    if not path.exists():
        return "is missing"
    if not path.is_file() or not os.access(path, os.X_OK):
        return "is not executable"
    with path.open("rb") as stream:
        head = stream.read(_HEAD)
    if head.startswith(b"\x7fELF"):
        return _elf_fault(path, head)
    if head.startswith(b"#!"):
        return _script_fault(head)
    return "is neither a program nor a script"


def _script_fault(head: bytes) -> str:
    words = head[2:].split(b"\n", 1)[0].split()
    if not words:
        return "names no interpreter"
    interpreter = os.fsdecode(words[0])
    return "" if os.access(interpreter, os.X_OK) else f"needs {interpreter}, which is missing"


def _elf_fault(path: Path, head: bytes) -> str:
    if len(head) < 64 or head[4:6] != b"\x02\x01":
        return "is not a 64-bit program of this machine"
    (machine,) = struct.unpack_from("<H", head, 18)
    if machine != _ELF_MACHINES.get(os.uname().machine):
        return f"is for another machine (ELF machine {machine})"
    interpreter = _elf_interpreter(path, head)
    if interpreter and not os.access(interpreter, os.X_OK):
        return f"needs {interpreter}, which is missing"
    return ""


def _elf_interpreter(path: Path, head: bytes) -> str:
    """The path in PT_INTERP, empty for a static program. Field offsets: Elf64_Ehdr and
    Elf64_Phdr.
    """
    (table,) = struct.unpack_from("<Q", head, 32)
    entry, count = struct.unpack_from("<HH", head, 54)
    with path.open("rb") as stream:
        stream.seek(table)
        headers = stream.read(entry * count)
        for position in range(0, len(headers) - entry + 1, entry):
            kind, _flags, offset, _vaddr, _paddr, size = struct.unpack_from(
                "<IIQQQQ", headers, position
            )
            if kind == _PT_INTERP:
                stream.seek(offset)
                return os.fsdecode(stream.read(size).rstrip(b"\0"))
    return ""

"""Every library that an ELF file needs is in the image, where the loader looks without a cache."""

import posixpath

from agentbox.host.image.check.elf import Elf, read_elf
from agentbox.host.image.check.layers import Placed, Root
from agentbox.host.image.check.suggested import suggested

_DATA = "usr/share/"  # the same on every machine (FHS 4.11), so nothing there is ever loaded: samples of compilers
_TRIPLETS = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}


def missing(root: Root, arch: str) -> list[str]:
    """One sentence a library that is not found, a foreign architecture, or an interpreter that does not exist."""
    found = []
    for each in root.files:
        loaded = each.entry.size > 64 and not each.entry.path.startswith(_DATA)
        elf = read_elf(each.file) if loaded and not suggested(each.entry.owner, each.entry.path) else None
        if elf is not None:
            found += [
                f"layer {each.layer}, {each.entry.path} ({each.entry.owner}): {why}"
                for why in _wrong(root, each, elf, arch)
            ]
    return found


def _wrong(root: Root, each: Placed, elf: Elf, arch: str) -> list[str]:
    if elf.machine != arch:
        return [f"is for {elf.machine}"]
    why = []
    if elf.interpreter and root.resolve(elf.interpreter) is None:
        why.append(f"its interpreter {elf.interpreter} is not in the image")
    folders = [*_own_folders(each, elf), *_default_folders(arch)]
    absent = [name for name in elf.needed if not any(root.resolve(f"{folder}/{name}") for folder in folders)]
    return why + [f"needs {name}, which is in none of {', '.join(folders)}" for name in absent]


def _own_folders(each: Placed, elf: Elf) -> list[str]:
    origin = posixpath.dirname(f"/{each.entry.path}")
    return [path.replace("$ORIGIN", origin).replace("${ORIGIN}", origin) for path in elf.paths]


def _default_folders(arch: str) -> list[str]:
    """Those that Debian's glibc is built with."""
    return [f"/usr/lib/{_TRIPLETS[arch]}", "/usr/lib", "/usr/lib64"]

"""Every library that an ELF file needs is in the image, where the loader looks without a cache."""

import posixpath

from agentbox.host.image.check.elf import Elf, read_elf
from agentbox.host.image.check.layers import ImageRoot, PlacedEntry
from agentbox.host.image.check.suggested import is_suggested

# the same on every machine (FHS 4.11), so never loaded: samples of compilers
_DATA_DIRECTORY = "usr/share/"
_TRIPLETS = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}


def missing_libraries(root: ImageRoot, arch: str) -> list[str]:
    """Report missing libraries, foreign architectures, and missing interpreters."""
    findings = []
    for placed in root.files:
        loadable = placed.entry.size > 64 and not placed.entry.path.startswith(_DATA_DIRECTORY)
        elf = (
            read_elf(placed.file)
            if loadable and not is_suggested(placed.entry.owner, placed.entry.path)
            else None
        )
        if elf is not None:
            findings += [
                f"layer {placed.layer}, {placed.entry.path} ({placed.entry.owner}): {problem}"
                for problem in _problems(root, placed, elf, arch)
            ]
    return findings


def _problems(root: ImageRoot, placed: PlacedEntry, elf: Elf, arch: str) -> list[str]:
    if elf.machine != arch:
        return [f"is for {elf.machine}"]
    problems = []
    if elf.interpreter and root.resolve(elf.interpreter) is None:
        problems.append(f"its interpreter {elf.interpreter} is not in the image")
    directories = [*_elf_directories(placed, elf), *_default_directories(arch)]
    missing_names = [
        name
        for name in elf.needed
        if not any(root.resolve(f"{directory}/{name}") for directory in directories)
    ]
    return problems + [
        f"needs {name}, which is in none of {', '.join(directories)}" for name in missing_names
    ]


def _elf_directories(placed: PlacedEntry, elf: Elf) -> list[str]:
    origin = posixpath.dirname(f"/{placed.entry.path}")
    return [path.replace("$ORIGIN", origin).replace("${ORIGIN}", origin) for path in elf.paths]


def _default_directories(arch: str) -> list[str]:
    """The default directories of Debian's glibc."""
    return [f"/usr/lib/{_TRIPLETS[arch]}", "/usr/lib", "/usr/lib64"]

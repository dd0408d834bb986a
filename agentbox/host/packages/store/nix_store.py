"""The Nix store, for locked files: store paths, validity, adding, GC roots. Works with Nix 2.8."""

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.paths import environment
from agentbox.host.packages.errors import PrerequisiteError
from agentbox.host.packages.host_command import run
from agentbox.plan.lockfile.model import BuildTools, LockEntry

_STORE = "/nix/store"
_ALPHABET = "0123456789abcdfghijklmnpqrsvwxyz"
_NIX_CONFIG = (
    "sandbox = true",
    "sandbox-fallback = false",
    "substituters =",
    "flake-registry =",
    "experimental-features = nix-command flakes",
)
_DAEMON_SOCKET = Path("/nix/var/nix/daemon-socket/socket")


def nix_environment() -> dict[str, str]:
    """Return the environment of every Nix call: a strict sandbox, no substituter, no registry; root
    builds without build users.

    Raises PrerequisiteError (exit 3) without Nix, or without root and a running daemon.
    """
    if shutil.which("nix") is None:
        raise PrerequisiteError(
            "cannot use the Nix store: nix is not installed", "Install it: apt install nix-bin"
        )
    lines = list(_NIX_CONFIG)
    if os.geteuid() == 0:
        lines.insert(0, "build-users-group =")
    elif not _DAEMON_SOCKET.exists():
        raise PrerequisiteError(
            "cannot use the Nix store: you are not root and no Nix daemon runs",
            "Start nix-daemon, or run the command with sudo.",
        )
    return {**environment(), "NIX_CONFIG": "\n".join(lines) + "\n"}


def flat_path(entry: LockEntry) -> str:
    """Return the path of `nix store add-file --name <file>` for an entry, which its derivation
    expects.
    """
    inner = hashlib.sha256(f"fixed:out:sha256:{entry.sha256}:".encode()).hexdigest()
    return _path("output:out", inner, entry.file)


def recursive_path(seed: BuildTools, name: str) -> str:
    """Return the path of `nix store add-path --name <name>` for a directory with that NAR hash."""
    return _path("source", seed.nar.removeprefix("sha256:"), name)


def valid_paths(paths: Iterable[str]) -> frozenset[str]:
    """Return the paths that the store has."""
    requested = sorted(set(paths))
    if not requested:
        return frozenset()
    result = run(
        ["nix-store", "--check-validity", "--print-invalid", *requested], extra=nix_environment()
    )
    return frozenset(requested) - frozenset(result.out.split())


def add_files(files: Sequence[tuple[LockEntry, Path]]) -> None:
    """Adds files under their store names: flat, SHA-256, the same paths as `nix store add-file`.

    One process for all of them. Raises AgentboxError (exit 6) if the store fails,
    PrerequisiteError.
    """
    if not files:
        return
    with tempfile.TemporaryDirectory(prefix="store-", dir=files[0][1].parent) as directory:
        links = [_link_or_copy(path, Path(directory) / entry.file) for entry, path in files]
        result = run(["nix-store", "--add-fixed", "sha256", *links], extra=nix_environment())
    added = result.out.split()
    if result.code != 0 or added != [flat_path(entry) for entry, _ in files]:
        raise _store_error(f"{len(files)} files", result.reason)


def add_directory(directory: Path, name: str) -> str:
    """Adds a directory recursively and returns its store path. Raises AgentboxError (exit 6)."""
    result = run(
        ["nix", "store", "add-path", "--name", name, str(directory)], extra=nix_environment()
    )
    if result.code != 0:
        raise _store_error(name, result.reason)
    return result.out.strip()


def root_paths(directory: Path, paths: Iterable[str]) -> None:
    """Protects these store paths from garbage collection while `directory` exists. Raises
    AgentboxError (exit 6).
    """
    targets = sorted(set(paths))
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _exclusive_lock(directory):
        _root_paths(directory, targets)


@contextmanager
def _exclusive_lock(directory: Path) -> Iterator[None]:
    """Serialises calls: concurrent ones would conflict over links that the other Nix is
    renaming.
    """
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _root_paths(directory: Path, targets: Sequence[str]) -> None:
    if sorted(str(link.readlink()) for link in directory.iterdir() if link.is_symlink()) == targets:
        return
    # Nix names the links of one call file, file-2, file-3 and so on; old ones are overwritten.
    call = ["nix-store", "--realise", *targets, "--add-root", str(directory / "file"), "--indirect"]
    result = run(call, extra=nix_environment())
    if result.code != 0:
        raise _store_error(f"{len(targets)} roots", result.reason)
    for link in directory.iterdir():
        if str(link.readlink()) not in targets:
            link.unlink()


def _link_or_copy(path: Path, name: Path) -> str:
    try:
        os.link(path, name)
    except OSError:
        shutil.copyfile(path, name)
    return str(name)


def _path(kind: str, inner_hex: str, name: str) -> str:
    digest = hashlib.sha256(f"{kind}:sha256:{inner_hex}:{_STORE}:{name}".encode()).digest()
    return f"{_STORE}/{_base32(_fold(digest, 20))}-{name}"


def _fold(digest: bytes, size: int) -> bytes:
    folded = bytearray(size)
    for index, value in enumerate(digest):
        folded[index % size] ^= value
    return bytes(folded)


def _base32(data: bytes) -> str:
    """Nix's base 32: least significant digit last, without e, o, t and u."""
    number = int.from_bytes(data, "little")
    length = (len(data) * 8 + 4) // 5
    return "".join(_ALPHABET[number >> (5 * index) & 31] for index in reversed(range(length)))


def _store_error(subject: str, reason: str) -> AgentboxError:
    return AgentboxError(
        f"cannot add {subject} to the Nix store: {reason}",
        "Check the free disk space.",
        exit_code=ExitCode.ENGINE,
    )

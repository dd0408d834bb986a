"""Where things go and what they are allowed to be: pure functions of a path, so that every layer says the same."""

from agentbox.core.errors import AgentboxError

MERGED = ("bin", "lib", "lib64", "sbin")  # top-level links into usr/

# Folders that are not root's 0755: path -> (mode, uid, gid).
_BOX = (0o755, 1000, 1000)
_STATE = "var/lib/agentbox"
FOLDERS: dict[str, tuple[int, int, int]] = {
    "run": _BOX,
    "tmp": (0o1777, 0, 0),
    _STATE: _BOX,
    # Volumes are mounted on these and copy the owner: the agents', and those of two exceptions, which need no new image.
    **{f"{_STATE}/{name}": _BOX for name in ("branches", "code-server", "telegram")},
    "var/log": _BOX,
    "var/log/supervisor": _BOX,
    "var/run": _BOX,
    "workspace": _BOX,
}
# Made even when no package has them: engines mount over the first five.
SKELETON = ("dev", "etc", "opt", "proc", "sys", "usr/bin", "usr/lib", "usr/lib64", "usr/sbin", *FOLDERS)

# base-files ships these as links into /run. A tmpfs on a link to /run would hide /run itself.
REPLACED = ("var/run", "var/lock")

_DROPPED = ("usr/share/man", "usr/share/info", "usr/share/locale", "usr/share/lintian")
_DOC = "usr/share/doc"


def place(path: str) -> str:
    """The path in the image of a package's path: `bin`, `lib`, `lib64` and `sbin` live below `usr`.

    Raises AgentboxError for a path that leaves the root.
    """
    plain = inside(path)
    first, below, _ = plain.partition("/")
    return f"usr/{plain}" if below and first in MERGED else plain


def inside(path: str) -> str:
    """A path without `.`, empty parts and slashes at its ends. Raises AgentboxError for one that leaves the root."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise AgentboxError(f"cannot place {path}: it leaves the root")
    return "/".join(parts)


def dropped(path: str) -> bool:
    """True for documentation, save the copyright files (and the links between folders that lead to them)."""
    if any(path == root or path.startswith(root + "/") for root in _DROPPED):
        return True
    inside = path.removeprefix(_DOC + "/")
    return inside != path and "/" in inside and not inside.endswith("/copyright")


def file_mode(mode: int) -> int:
    """A package's permission bits without set-id, sticky, and group or other write."""
    return mode & 0o755


def folder(path: str) -> tuple[int, int, int]:
    """Mode, uid and gid of a folder. Those in the state folder are the box's own: a feature's volume is mounted there."""
    if path.rpartition("/")[0] == _STATE:
        return _BOX
    return FOLDERS.get(path, (0o755, 0, 0))

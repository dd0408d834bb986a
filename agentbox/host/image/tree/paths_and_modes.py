"""Paths and modes in the image: pure functions of a path, so that every layer agrees."""

from agentbox.core.errors import AgentboxError

MERGED = ("bin", "lib", "lib64", "sbin")  # top-level links into usr/

# Directories that are not root's 0755: path -> (mode, uid, gid).
_BOX_OWNED = (0o755, 1000, 1000)
_STATE = "var/lib/agentbox"
DIRECTORY_MODES: dict[str, tuple[int, int, int]] = {
    "run": _BOX_OWNED,
    "tmp": (0o1777, 0, 0),
    _STATE: _BOX_OWNED,
    # Volumes are mounted on these and copy the owner: the agents', and those of two exceptions,
    # which need no new image.
    **{
        f"{_STATE}/{name}": _BOX_OWNED
        for name in ("backups", "branches", "code-server", "telegram")
    },
    "var/log": _BOX_OWNED,
    "var/log/supervisor": _BOX_OWNED,
    "var/run": _BOX_OWNED,
    "workspace": _BOX_OWNED,
}
# Created even if no package has them: engines mount over the first five.
SKELETON = (
    "dev",
    "etc",
    "opt",
    "proc",
    "sys",
    "usr/bin",
    "usr/lib",
    "usr/lib64",
    "usr/sbin",
    *DIRECTORY_MODES,
)

# base-files ships these as links into /run. A tmpfs on a link to /run would hide /run itself.
REPLACED = ("var/run", "var/lock")

_DROPPED = ("usr/share/man", "usr/share/info", "usr/share/locale", "usr/share/lintian")
_DOC = "usr/share/doc"


def image_path(path: str) -> str:
    """Return the image path of a package's path: `bin`, `lib`, `lib64` and `sbin` are below `usr`.

    Raises AgentboxError for a path outside the root.
    """
    relative = relative_path(path)
    first, remainder, _ = relative.partition("/")
    return f"usr/{relative}" if remainder and first in MERGED else relative


def relative_path(path: str) -> str:
    """Return a path without `.`, empty parts and outer slashes. Raises AgentboxError for one
    outside the root.
    """
    parts = [segment for segment in path.split("/") if segment not in ("", ".")]
    if ".." in parts:
        raise AgentboxError(f"cannot place {path}: it is outside the root")
    return "/".join(parts)


def is_dropped(path: str) -> bool:
    """True for documentation except copyright files (and directory links that lead to them)."""
    if any(path == root or path.startswith(root + "/") for root in _DROPPED):
        return True
    remainder = path.removeprefix(_DOC + "/")
    return remainder != path and "/" in remainder and not remainder.endswith("/copyright")


def file_mode(mode: int) -> int:
    """Return a package's permission bits without set-id, sticky, and group or other write."""
    return mode & 0o755


def directory_mode(path: str) -> tuple[int, int, int]:
    """Return mode, uid and gid of a directory. Those in the state directory belong to the box: a
    feature's volume is mounted there.
    """
    if path.rpartition("/")[0] == _STATE:
        return _BOX_OWNED
    return DIRECTORY_MODES.get(path, (0o755, 0, 0))

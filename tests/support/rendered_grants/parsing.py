"""Syntax shared by several targets: sizes, addresses, mount options, groups."""

import re
from collections.abc import Iterable, Mapping

from agentbox.core.canonical import digest
from agentbox.core.data_files import config_dir
from support.rendered_grants.model import GrantedMount, UnknownGrantError, require_known

DEFAULT = "the engine's default list"
_UNITS = {
    "": 1,
    "b": 1,
    "k": 1 << 10,
    "m": 1 << 20,
    "g": 1 << 30,
    "ki": 1 << 10,
    "mi": 1 << 20,
    "gi": 1 << 30,
}
_SIZE = re.compile(r"([0-9]+)([A-Za-z]*)")
_PUBLISHED = re.compile(r"(?:(\[[0-9a-fA-F:]+\]|[0-9.]+):)?([0-9]+):([0-9]+)")
_MOUNT_OPTIONS = (
    "mode",
    "size",
    "uid",
    "gid",
    "noexec",
    "exec",
    "nosuid",
    "suid",
    "nodev",
    "dev",
    "ro",
    "rw",
)
_VETOES = {"noexec": "exec", "nosuid": "suid", "nodev": "dev", "ro": "write"}


def parse_size(text: object) -> float:
    """Parse `4096m`, `64M`, `4096Mi` or a number of bytes. Raises UnknownGrantError."""
    match = _SIZE.fullmatch(str(text))
    if match is None or match[2].lower() not in _UNITS:
        raise UnknownGrantError(f"cannot read size {text!r}", "")
    return int(match[1]) * _UNITS[match[2].lower()]


def parse_port(text: str) -> tuple[str, int]:
    """Parse `[address:]port:port` with equal ports. Without address it means every address."""
    match = _PUBLISHED.fullmatch(text)
    if match is None or match[2] != match[3]:
        raise UnknownGrantError(f"cannot read published port {text!r}", "")
    return (match[1] or "0.0.0.0").strip("[]"), int(match[2])


def parse_tmpfs(text: str) -> GrantedMount:
    """Parse `target:options`. Engine defaults for missing options are not assumed."""
    target, _, options = text.partition(":")
    parsed = dict(option.partition("=")[::2] for option in options.split(",") if option)
    require_known(f"tmpfs {target}", parsed, _MOUNT_OPTIONS)
    flags = frozenset(["write", "exec", "suid", "dev"]) - {
        _VETOES[word] for word in parsed if word in _VETOES
    }
    return GrantedMount(
        target=target,
        source="tmpfs",
        flags=flags,
        size=parse_size(parsed["size"]) if "size" in parsed else float("inf"),
    )


def granted_capabilities(added: Iterable[str], dropped: Iterable[str]) -> frozenset[str]:
    """Return the added capabilities, with the engine's default list unless ALL is dropped."""
    granted = frozenset(added)
    return granted if "ALL" in dropped else granted | {DEFAULT}


def security_options(options: list[str], files: Mapping[str, bytes]) -> tuple[bool, str]:
    """Return whether privilege escalation is possible, and the digest of the seccomp file ("" =
    another one).
    """
    escalation, seccomp = True, ""
    for option in options:
        name, _, value = option.replace(":", "=", 1).partition("=")
        if name == "no-new-privileges" and value in ("", "true"):
            escalation = False
        elif name == "seccomp":
            seccomp = file_digest(value, files)
        else:
            raise UnknownGrantError(f"cannot read security option {option!r}", "")
    return escalation, seccomp


def file_digest(path: str, files: Mapping[str, bytes]) -> str:
    """Return the digest of a rendered file; "" for any other path."""
    content = files.get(path.removeprefix("./"))
    return "" if content is None else digest(content)


def parse_restarts(text: str) -> float:
    """Return how often a failed box is restarted."""
    if text == "no":
        return 0
    name, _, count = text.partition(":")
    return int(count) if name == "on-failure" and count.isdecimal() else float("inf")


def group_number(name: str) -> str:
    """Return the group's number in the image's /etc/group as text, else the name."""
    rows = (row.split(":") for row in (config_dir() / "etc/group").read_text().splitlines())
    return next((row[2] for row in rows if row[0] == name), name)

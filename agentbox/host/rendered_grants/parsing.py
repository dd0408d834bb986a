"""Words that several targets share: sizes, addresses, mount options, groups."""

import re
from collections.abc import Iterable, Mapping

from agentbox.core.canonical import digest
from agentbox.core.data_files import config_dir
from agentbox.host.rendered_grants.model import GrantedMount, UnknownGrantError, require_known

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
    """`4096m`, `64M`, `4096Mi` or a number of bytes. Raises UnknownGrantError."""
    match = _SIZE.fullmatch(str(text))
    if match is None or match[2].lower() not in _UNITS:
        raise UnknownGrantError(f"cannot read size {text!r}", "")
    return int(match[1]) * _UNITS[match[2].lower()]


def parse_port(text: str) -> tuple[str, int]:
    """`[address:]port:port` of a port that keeps its number. Without address every address is meant."""
    match = _PUBLISHED.fullmatch(text)
    if match is None or match[2] != match[3]:
        raise UnknownGrantError(f"cannot read published port {text!r}", "")
    return (match[1] or "0.0.0.0").strip("[]"), int(match[2])


def parse_tmpfs(text: str) -> GrantedMount:
    """`target:options`. An option that is not written is not relied on, whatever the engine's default."""
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
    """What is left: additions, and the engine's default list unless ALL is dropped."""
    granted = frozenset(added)
    return granted if "ALL" in dropped else granted | {DEFAULT}


def security_options(options: list[str], files: Mapping[str, bytes]) -> tuple[bool, str]:
    """Whether privileges may grow, and the digest of the seccomp file ("" = none of ours)."""
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
    """Of the rendered file that a text names; "" when it names another."""
    content = files.get(path.removeprefix("./"))
    return "" if content is None else digest(content)


def parse_restarts(text: str) -> float:
    """How often a failed box is started again."""
    if text == "no":
        return 0
    name, _, count = text.partition(":")
    return int(count) if name == "on-failure" and count.isdecimal() else float("inf")


def group_number(name: str) -> str:
    """The number that the image's /etc/group gives a name, as text; the name itself where it gives none."""
    rows = (row.split(":") for row in (config_dir() / "etc/group").read_text().splitlines())
    return next((row[2] for row in rows if row[0] == name), name)

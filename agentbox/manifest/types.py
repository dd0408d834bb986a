"""The named types of manifest keys, in the order of docs/manifest.md. A type with a
`TypeInfo` has one name, text and example everywhere; everything else about it is derived.
Standard library only: the boot imports this.
"""

from collections.abc import Mapping
from itertools import chain
from typing import Annotated, Any, Final, Literal, Self, get_args, get_origin

from agentbox.manifest import named_types
from agentbox.manifest.declarations.constraints import MinItems, Pattern, Range, TypeInfo
from agentbox.manifest.named_types import HOST, PATH

_UNITS: Final = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


class Size(int):
    """Bytes, written `<n>KiB`, `<n>MiB`, `<n>GiB` or `<n>TiB`. Raises ValueError for others."""

    text: str

    def __new__(cls, text: str) -> Self:
        size = super().__new__(cls, size_bytes(text))
        size.text = text
        return size

    def __str__(self) -> str:
        return self.text


def size_bytes(text: str) -> int:
    """`"4GiB"` -> 4294967296. Raises ValueError unless it is a whole number with a binary unit."""
    number, unit = text[:-3], text[-3:]
    if unit not in _UNITS or not number.isascii() or not number.isdigit() or number.startswith("0"):
        raise ValueError(f"not a size: {text!r}")
    return int(number) * _UNITS[unit]


_NAME = "^[a-z][a-z0-9-]{0,31}$"
_VARIABLE = "^[A-Z][A-Z0-9_]{0,63}$"
_AUTHORITY = r"[^\s/?#@]+([/?#]\S*)?$"
_KEY = "^[0-9a-f]{64}$|^npub1[02-9ac-hj-np-z]{58}$"
_OCTET = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_GROUP = "[0-9A-Fa-f]{1,4}"
_IPV6 = (
    f"({_GROUP}:){{7}}{_GROUP}|({_GROUP}:){{1,7}}:|({_GROUP}:){{1,6}}:{_GROUP}|"
    + "".join(f"({_GROUP}:){{1,{7 - n}}}(:{_GROUP}){{1,{n}}}|" for n in range(2, 6))
    + f"{_GROUP}:(:{_GROUP}){{1,6}}|:((:{_GROUP}){{1,7}}|:)"
)
_PORT = r":([1-9][0-9]{0,4}|\*)"
_BARE_IPV6 = "^[0-9A-Fa-f]{0,4}(:[0-9A-Fa-f]{0,4}){2,7}(/[0-9]{1,3})?$"
_ZEROS = "0" * 64
_WS_NOUN, _WS_EXAMPLE = "a ws or wss URL without credentials", '"wss://relay.example"'
_KEY_NOUN, _KEY_EXAMPLE = "a public key, 64 hex digits or npub1...", f'"{_ZEROS}"'
SizeText = Annotated[
    str,
    TypeInfo("size", 'A whole number and a binary unit, no space: "512MiB".', "a size", '"512MiB"'),
    Pattern("^([1-9][0-9]{0,14}KiB|[1-9][0-9]{0,11}MiB|[1-9][0-9]{0,8}GiB|[1-9][0-9]{0,5}TiB)$"),
]
Port = Annotated[
    int,
    TypeInfo("port", "A TCP port that needs no privilege.", "a port number", "9090"),
    Range(1024, 65535),
]
Name = Annotated[
    str,
    TypeInfo(
        "name",
        "A lower case name: letters, digits and hyphens, at most 32.",
        "a name",
        '"worker-7"',
    ),
    Pattern(_NAME),
]
Env = Annotated[
    str,
    TypeInfo(
        "env",
        'The name of an environment variable, never its value; "" for none.',
        "the name of a variable",
        '"MY_TOKEN"',
    ),
    Pattern(f"^$|{_VARIABLE}"),
]
BoxPath = Annotated[
    str,
    TypeInfo(
        "path",
        'An absolute, normalised path in the container; "" for none.',
        "an absolute path",
        '"/run/secrets/token"',
    ),
    Pattern(f"^$|{PATH}"),
]
RelativePath = Annotated[
    str,
    TypeInfo("relative_path", "A normalised path.", "a path beside the manifest", '"skills"'),
    Pattern(r"^(?!\.{1,2}(/|$))[A-Za-z0-9._-]{1,64}(/(?!\.{1,2}(/|$))[A-Za-z0-9._-]{1,64}){0,15}$"),
]
HttpUrl = Annotated[
    str,
    TypeInfo(
        "http_url",
        'An http or https URL without user name or password; "" for none.',
        "an http or https URL without credentials",
        '"https://host.example:9090"',
    ),
    Pattern(f"^$|^https?://{_AUTHORITY}"),
]
IpLiteral = Annotated[
    str,
    TypeInfo("ip", "An IPv4 or IPv6 address.", "an IP address", '"127.0.0.1"'),
    Pattern(rf"^(({_OCTET}\.){{3}}{_OCTET}|{_IPV6})$"),
]
Digest = Annotated[
    str,
    TypeInfo("sha256", "A digest: sha256:<64 hex digits>.", "a digest", f'"sha256:{_ZEROS}"'),
    Pattern("^sha256:[0-9a-f]{64}$"),
]
PackageName = Annotated[
    str,
    TypeInfo(
        "package",
        "The name of a package, as the package source spells it.",
        "a package name",
        '"git"',
    ),
    Pattern("^[A-Za-z0-9][A-Za-z0-9+._-]*$"),
]
Word = Annotated[
    str,
    TypeInfo("word", "One lower case word.", "a word", '"gpu"'),
    Pattern("^[a-z][a-z0-9_.-]{0,63}$"),
]
VolumeSource = Annotated[
    str,
    TypeInfo(
        "volume_source",
        "The name of a volume, or an absolute path of the host.",
        "a volume name or an absolute host path",
        '"cache"',
    ),
    Pattern(f"{_NAME}|{PATH}"),
]
Device = Annotated[
    str,
    TypeInfo("device", "The path of a device of the host.", "a device path", '"/dev/dri"'),
    Pattern(r"^/dev(/(?!\.{1,2}(/|$))[A-Za-z0-9._-]+)+$"),
]
Group = Annotated[
    str,
    TypeInfo("group", "A group, by name or number.", "a group", '"video"'),
    Pattern("^([a-z_][a-z0-9_-]{0,31}|[0-9]{1,10})$"),
]
Capability = Annotated[
    str,
    TypeInfo(
        "capability",
        "A Linux capability without CAP_.",
        "a capability without CAP_",
        '"NET_BIND_SERVICE"',
    ),
    Pattern("^(?!CAP_)[A-Z][A-Z_]{0,31}$"),
]
ExceptionKey = Annotated[
    Literal[
        "desktop",
        "gpu-rocm",
        "gpu-cuda",
        "gaussian-splatting",
        "playwright",
        "code-server",
        "telegram-mirror",
    ],
    TypeInfo("exception_key", "The key of an exception.", "the key of an exception", '"desktop"'),
]
NameOrNone = Annotated[
    str,
    TypeInfo("name_or_none", 'A name, or "" for none.', "a name", '"anthropic"'),
    Pattern(f"^$|{_NAME}"),
]
Variable = Annotated[
    str,
    TypeInfo(
        "variable", "The name of an environment variable.", "the name of a variable", '"LANG"'
    ),
    Pattern(_VARIABLE),
]
WsUrl = Annotated[
    str,
    TypeInfo(
        "ws_url",
        'A ws or wss URL without user name or password; "" for none.',
        _WS_NOUN,
        _WS_EXAMPLE,
    ),
    Pattern(f"^$|^wss?://{_AUTHORITY}"),
]
RelayUrl = Annotated[
    str,
    TypeInfo("relay", "A ws or wss URL without user name or password.", _WS_NOUN, _WS_EXAMPLE),
    Pattern(f"^wss?://{_AUTHORITY}"),
]
PublicKey = Annotated[
    str,
    TypeInfo("public_key", "A public key: 64 hex digits, or npub1...", _KEY_NOUN, _KEY_EXAMPLE),
    Pattern(_KEY),
]
PublicKeyOrNone = Annotated[
    str,
    TypeInfo(
        "public_key_or_none",
        'A public key: 64 hex digits, or npub1...; "" for none.',
        _KEY_NOUN,
        _KEY_EXAMPLE,
    ),
    Pattern(f"^$|{_KEY}"),
]
Glob = Annotated[
    str,
    TypeInfo("glob", "A name, or one with * and ?.", "a name or a pattern of names", '"small-*"'),
    Pattern(r"^[A-Za-z0-9._*?\[\]!:/@+-]{1,128}$"),
]
Argument = Annotated[
    str,
    TypeInfo("argument", "One word of a command line.", "a word of a command line", '"--verbose"'),
    Pattern(r"^[^\u0000]*$"),
]
CommandLine = Annotated[
    tuple[Argument, ...],
    TypeInfo(
        "command_line",
        "A program and its first arguments, one item a word; no shell.",
        "a list of words",
        '["claude", "-p"]',
    ),
    MinItems(1),
]
ApprovalAction = Annotated[
    str,
    TypeInfo(
        "action",
        "An action: tool:<pattern>, host:<pattern> or spawn:<pattern>.",
        "an action",
        '"tool:git/*"',
    ),
    Pattern(r"^(tool|host|spawn):[^\s\u0000-\u001f\u007f]{1,128}$"),
]
PolicyPattern = Annotated[
    str,
    TypeInfo("pattern", "A pattern in the form of its scope.", "a pattern", '"$WORKSPACE/**"'),
    Pattern(r"^[^\u0000-\u001f\u007f]{1,4096}$"),
]
NetPattern = Annotated[
    str,
    TypeInfo(
        "net_pattern",
        "A host, *.host, IP or CIDR, with :port or :*; without, port 443. IPv6 with a port stands "
        "in brackets.",
        "a host, *.host, IP or CIDR, with or without a port",
        '"*.example.com:443"',
    ),
    Pattern(f"^{HOST}({_PORT})?$|{_BARE_IPV6}"),
]
NetTarget = Annotated[
    str,
    TypeInfo(
        "net_target",
        "A host, IP or CIDR with :port or :*. IPv6 stands in brackets.",
        "a host, IP or CIDR with a port",
        '"10.0.0.5:5432"',
    ),
    Pattern(f"^{HOST}{_PORT}$"),
]


def types_by_name() -> Mapping[str, Any]:
    """The annotation of each named type, by its name."""
    hints: dict[str, Any] = {}
    modules = (vars(named_types),)
    for hint in chain(globals().values(), *(names.values() for names in modules)):
        if get_origin(hint) is Annotated:
            hints.update((mark.name, hint) for mark in get_args(hint) if isinstance(mark, TypeInfo))
    return hints

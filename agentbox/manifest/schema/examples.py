"""Descriptions of the schema's types, with valid examples in TOML, for remedies."""

from collections.abc import Mapping
from typing import Final

EXAMPLES: Final[Mapping[str, tuple[str, str]]] = {
    "size": ("a size", '"512MiB"'),
    "port": ("a port number", "9090"),
    "name": ("a name", '"worker-7"'),
    "env": ("the name of a variable", '"MY_TOKEN"'),
    "path": ("an absolute path", '"/run/secrets/token"'),
    "http_url": ("an http or https URL without credentials", '"https://host.example:9090"'),
    "ip": ("an IP address", '"127.0.0.1"'),
    "sha256": ("a digest", f'"sha256:{"0" * 64}"'),
    "package": ("a package name", '"git"'),
    "word": ("a word", '"gpu"'),
    "volume_source": ("a volume name or an absolute host path", '"cache"'),
    "device": ("a device path", '"/dev/dri"'),
    "group": ("a group", '"video"'),
    "capability": ("a capability without CAP_", '"NET_BIND_SERVICE"'),
    "exception_key": ("the key of an exception", '"desktop"'),
    "name_or_none": ("a name", '"anthropic"'),
    "variable": ("the name of a variable", '"LANG"'),
    "ws_url": ("a ws or wss URL without credentials", '"wss://relay.example"'),
    "relay": ("a ws or wss URL without credentials", '"wss://relay.example"'),
    "public_key": ("a public key, 64 hex digits or npub1...", f'"{"0" * 64}"'),
    "public_key_or_none": ("a public key, 64 hex digits or npub1...", f'"{"0" * 64}"'),
    "glob": ("a name or a pattern of names", '"small-*"'),
    "argument": ("a word of a command line", '"--verbose"'),
    "command_line": ("a list of words", '["claude", "-p"]'),
    "action": ("an action", '"tool:git/*"'),
    "pattern": ("a pattern", '"$WORKSPACE/**"'),
    "http_path": ("a path of a request", '"/v1/*"'),
    "net_pattern": ("a host, *.host, IP or CIDR, with or without a port", '"*.example.com:443"'),
    "net_target": ("a host, IP or CIDR with a port", '"10.0.0.5:5432"'),
}

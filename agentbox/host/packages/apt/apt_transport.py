"""How this host's apt reaches its mirrors: through which proxy, trusting whom."""

import re
from functools import cache

from agentbox.host.packages.host_command import run

_OPTIONS = {"proxy": "Proxy", "cert": "CAInfo"}


@cache
def apt_transport(scheme: str) -> dict[str, str]:
    """`proxy` and `cert`, those that apt has a value for; no proxy if it connects directly."""
    words = [word for name in _OPTIONS for word in (name, f"Acquire::{scheme}::{_OPTIONS[name]}")]
    output = run(["apt-config", "shell", *words]).out
    found = dict(re.findall(r"^(\w+)='(.*)'$", output, re.MULTILINE))
    if found.get("proxy") == "DIRECT":
        del found["proxy"]
    return found

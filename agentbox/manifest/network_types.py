"""Types of `[network]`: a file of the host, and hosts at any port. Standard library only: the boot
imports this.
"""

from typing import Annotated

from agentbox.manifest.declarations.constraints import Pattern, TypeInfo

PATH = r"^/$|^(/(?!\.{1,2}(/|$))[^/\u0000-\u001f\u007f]+)+$"
_LABEL = "[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
HOST = (
    rf"((\*|(\*\.)?{_LABEL}(\.{_LABEL})*)|[0-9]{{1,3}}(\.[0-9]{{1,3}}){{3}}(/[0-9]{{1,2}})?|"
    r"\[[0-9A-Fa-f:.]{2,45}(/[0-9]{1,3})?\](/[0-9]{1,3})?)"
)

HostPath = Annotated[
    str,
    TypeInfo(
        "host_path",
        'An absolute, normalised path of this host; "" for none.',
        "an absolute path",
        '"/etc/ssl/corp.pem"',
    ),
    Pattern(f"^$|{PATH}"),
]
NetHost = Annotated[
    str,
    TypeInfo(
        "net_host",
        "A host, *.host, IP or CIDR, at any port. IPv6 stands in brackets.",
        "a host, *.host, IP or CIDR",
        '"*.corp.example"',
    ),
    Pattern(f"^{HOST}$"),
]

"""[network]: how this host and the box reach others, where a network does not let them directly."""

from typing import Annotated, Literal

from agentbox.core.frozen import frozen
from agentbox.manifest.declarations.constraints import Unique
from agentbox.manifest.declarations.key import key
from agentbox.manifest.named_types import HostPath, NetHost
from agentbox.manifest.types import Env, HttpUrl


@frozen
class NetworkTable:
    """The proxy of a network, and the authority of one that reads TLS. For packages, for calls of
    the box itself and for its agents; databases are reached directly.
    """

    proxy: HttpUrl = key(
        "", "recreate", doc='HTTP proxy on the way out; "" = none. Both http and https use it.'
    )
    proxy_env: Env = key(
        "",
        "recreate",
        doc="Variable with user:password for the proxy. Agents never see it.",
    )
    no_proxy: Annotated[tuple[NetHost, ...], Unique()] = key(
        (), "recreate", doc="Reached without the proxy. Loopback always is."
    )
    ca_bundle: HostPath = key(
        "",
        "recreate",
        doc="File of this host with certificates (PEM) that are trusted beside those of the "
        "image. It is mounted, not built in.",
    )
    resolve: Literal["local", "proxy"] = key(
        "local",
        "recreate",
        doc="Who looks up the names that agents reach. local: the box, which refuses private "
        "addresses; proxy: the proxy, for exact names of egress.allow only.",
    )

"""[api]: the management API."""

from typing import Annotated, Literal

from agentbox.core.frozen import frozen
from agentbox.manifest.declarations.constraints import Range
from agentbox.manifest.declarations.key import key
from agentbox.manifest.types import Env, HttpUrl, IpLiteral, Port, Size


@frozen
class ApiTable:
    """Where the management API listens and whom it lets in."""

    port: Port = key(9090, "rebuild", doc="Port of the management API.")
    publish_address: IpLiteral = key(
        "127.0.0.1", "recreate", doc="Host address that the port is published on."
    )
    auth: Literal["token", "nip98", "hybrid"] = key(
        "token", "boot", doc="Accepted credentials; hybrid = either."
    )
    max_body: Size = key(Size("1MiB"), "boot", doc="Largest request body.")
    public_base: HttpUrl = key(
        "",
        "boot",
        doc='URL under which callers reach this API (mesh endpoints, NIP-98); "" = '
        "http://127.0.0.1:<api.port>.",
    )
    token_env: Env = key(
        "AGENTBOX_API_TOKEN",
        "recreate",
        doc="Variable of the first admin token. Unset = generated at first boot, mode "
        "0600, in the state volume.",
    )
    session_idle_seconds: Annotated[int, Range(300, 86_400)] = key(
        28_800, "boot", doc="A person's session ends after this time without use, in seconds."
    )
    session_seconds: Annotated[int, Range(600, 604_800)] = key(
        86_400, "boot", doc="A person's session ends after this time in any case, in seconds."
    )

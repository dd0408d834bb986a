"""[api]: the management API."""

from dataclasses import dataclass
from typing import Literal

from agentbox.manifest.types import Env, HttpUrl, IpLiteral, Port, Size, key


@dataclass(frozen=True, kw_only=True)
class ApiTable:
    """Address and authentication of the management API."""

    port: Port = key(9090, "rebuild")
    publish_address: IpLiteral = key("127.0.0.1", "recreate")
    auth: Literal["token", "nip98", "hybrid"] = key("token", "boot")
    max_body: Size = key(Size("1MiB"), "boot")
    public_base: HttpUrl = key("", "boot")
    token_env: Env = key("AGENTBOX_API_TOKEN", "recreate")

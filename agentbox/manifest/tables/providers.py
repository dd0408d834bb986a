"""[providers.<name>]: model endpoints. Only the gateway reads the credentials."""

from dataclasses import dataclass
from typing import Annotated, Literal

from agentbox.manifest.types import Env, Glob, HttpUrl, Range, Unique, key


@dataclass(frozen=True, kw_only=True)
class ProviderTable:
    """One model endpoint. `base_url` may be a private address, since the operator chose it."""

    enabled: bool = key(False, "boot")
    kind: Literal["openai", "anthropic", "gemini"] = key("openai", "boot")
    base_url: HttpUrl = key("", "boot")
    env_var: Env = key("", "recreate", required=True)
    models: Annotated[tuple[Glob, ...], Unique()] = key(("*",), "live")
    max_concurrent: Annotated[int, Range(1, 256)] = key(4, "live")
    timeout_seconds: Annotated[int, Range(5, 3600)] = key(600, "live")

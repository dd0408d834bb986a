"""Environment variables that point an agent to the gateway, with its own token in place of proxy
credentials and API keys.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agentbox.policy.rights.grant_set import GrantSet

_PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
_DIRECT: Final = ("NO_PROXY", "no_proxy")
_AUTHORITIES: Final = (
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO",
    "PIP_CERT",
    "npm_config_cafile",  # a host's own setting of npm would come before that of Node.js
)
_LOOPBACK: Final = "127.0.0.1,::1,localhost"


def agent_environment(
    grant_set: GrantSet, token: str, port: int, provider_kinds: Mapping[str, str]
) -> dict[str, str]:
    """`port` is the gateway's, on loopback; `provider_kinds` the protocol of each model
    provider by name. The only secret is the
    agent's own token.
    """
    gateway = gateway_url(port)
    variables = {"AGENTBOX_URL": gateway, "AGENTBOX_TOKEN": token}
    if any(
        grant.right.mode == "allow" and "connect" in grant.right.operations
        for grant in grant_set.grants
    ):
        proxy = gateway.replace("://", f"://agent:{token}@")
        variables |= dict.fromkeys(_PROXIES, proxy) | dict.fromkeys(_DIRECT, _LOOPBACK)
    if (kind := provider_kinds.get(grant_set.provider)) is not None:
        variables |= _model_variables(kind, model_url(port, grant_set.provider), token)
    return variables


def gateway_url(port: int) -> str:
    """The only address of an agent."""
    return f"http://127.0.0.1:{port}"


def model_url(port: int, provider: str) -> str:
    """Where agents reach that provider of models, without the version of its protocol."""
    return f"{gateway_url(port)}/llm/{provider}"


def _model_variables(kind: str, base: str, token: str) -> dict[str, str]:
    """The variables read by the vendors' own clients. OpenAI's base URL includes the version, the
    others add it.
    """
    if kind == "anthropic":
        return {"ANTHROPIC_BASE_URL": base, "ANTHROPIC_API_KEY": token}
    if kind == "gemini":
        return {"GOOGLE_GEMINI_BASE_URL": base, "GEMINI_API_KEY": token}
    return {"OPENAI_BASE_URL": f"{base}/v1", "OPENAI_API_KEY": token}


def authority_environment(bundle: Path) -> dict[str, str]:
    """Names the file of `[network] ca_bundle` to the tools that would not look there; empty if the
    box has none."""
    return dict.fromkeys(_AUTHORITIES, str(bundle)) if bundle.exists() else {}

"""The variables by which an agent finds the gateway: its own token wherever a program would look for a proxy or a key."""

from collections.abc import Mapping
from typing import Any, Final

from agentbox.policy.rights.holding import Holding

_PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
_DIRECT: Final = ("NO_PROXY", "no_proxy")
_LOOPBACK: Final = "127.0.0.1,::1,localhost"


def of_agent(holding: Holding, token: str, port: int, providers: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """`port` is the gateway's, on loopback; `providers` is `plan.providers`. No value of it is anybody's secret but the agent's own."""
    gateway = f"http://127.0.0.1:{port}"
    found = {"AGENTBOX_URL": gateway, "AGENTBOX_TOKEN": token}
    if any(grant.right.mode == "allow" and "connect" in grant.right.operations for grant in holding.grants):
        proxy = gateway.replace("://", f"://agent:{token}@")
        found |= dict.fromkeys(_PROXIES, proxy) | dict.fromkeys(_DIRECT, _LOOPBACK)
    if holding.provider in providers:
        found |= _model(providers[holding.provider]["kind"], f"{gateway}/llm/{holding.provider}", token)
    return found


def _model(kind: str, base: str, token: str) -> dict[str, str]:
    """The names that the vendors' own clients read. Those of OpenAI have the version in the base, the others add it."""
    if kind == "anthropic":
        return {"ANTHROPIC_BASE_URL": base, "ANTHROPIC_API_KEY": token}
    if kind == "gemini":
        return {"GOOGLE_GEMINI_BASE_URL": base, "GEMINI_API_KEY": token}
    return {"OPENAI_BASE_URL": f"{base}/v1", "OPENAI_API_KEY": token}

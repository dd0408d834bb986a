"""Writes how the box reaches others: whom it trusts, and its proxy. Standard library only."""

from dataclasses import asdict

from agentbox.box.supervision.secrets import read_secret
from agentbox.core.certificates import read_certificates, system_roots
from agentbox.core.errors import AgentboxError
from agentbox.core.files.atomic import replace, replace_json
from agentbox.core.paths import Paths
from agentbox.plan.tables import NetworkPlan
from agentbox.policy.outgoing import Outgoing


def write_outgoing(paths: Paths, network: NetworkPlan) -> None:
    """Agents may read the authorities, never the user and password of the proxy.

    Raises AgentboxError for a file without certificates, and for a secret that is not there.
    """
    everybody = own = ""
    if network.ca_bundle:
        everybody, own = str(paths.all_authorities), str(paths.own_authorities)
        _write_authorities(paths)
    outgoing = Outgoing(
        proxy=network.proxy,
        account=_account(paths, network) if network.proxy else "",
        no_proxy=network.no_proxy,
        resolve=network.resolve,
        all_authorities=everybody,
        own_authorities=own,
    )
    replace_json(paths.outgoing, asdict(outgoing), mode=0o400, durable=False)


def _write_authorities(paths: Paths) -> None:
    own = read_certificates(paths.mounted_authorities, "network.ca_bundle")
    paths.authorities.mkdir(mode=0o755, parents=True, exist_ok=True)
    replace(paths.own_authorities, own.encode(), mode=0o444, durable=False)
    roots = f"{system_roots()}{own}"
    replace(paths.all_authorities, roots.encode(), mode=0o444, durable=False)


def _account(paths: Paths, network: NetworkPlan) -> str:
    if not network.proxy_env:
        return ""
    if found := read_secret(paths, network.proxy_env):
        if ":" in found[0]:
            return found[0]
        why = "it is not user:password"
    else:
        why = "it is not set"
    raise AgentboxError(
        f"cannot use the proxy: {network.proxy_env} (network.proxy_env): {why}",
        f"Set {network.proxy_env} to user:password, then run `agentbox up`.",
    )

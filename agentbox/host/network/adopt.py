"""What the operator says about the network, for this command and the programs that it starts: pip,
npm, apt, Nix and downloads of its own. They read it from their environment, which no box inherits.
"""

import hashlib
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote, urlsplit

from agentbox.core.certificates import read_certificates, system_roots
from agentbox.core.files.atomic_text import wrap_os_errors, write_atomically
from agentbox.core.paths import HostPaths, add_to_environment, environment

VARIABLE = "AGENTBOX_CA_BUNDLE"

_BUNDLES = (
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",  # requests prefers it to what pip is told
    "CURL_CA_BUNDLE",  # likewise
    "npm_config_cafile",
    "NIX_SSL_CERT_FILE",
    "GIT_SSL_CAINFO",
)


def adopt_authorities(ca_bundle: str = "") -> None:
    """Trusts what `AGENTBOX_CA_BUNDLE` and `[network] ca_bundle` name, beside this host's roots.

    Raises AgentboxError (exit 3) for a file that has no certificate.
    """
    named = [(VARIABLE, environment().get(VARIABLE, "")), ("network.ca_bundle", ca_bundle)]
    own = [read_certificates(Path(path), origin) for origin, path in named if path]
    if not own:
        return
    text = "".join([system_roots() or _packaged_roots(), *dict.fromkeys(own)])
    directory = HostPaths.for_this_user().cache / "authorities"
    bundle = directory / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.pem"
    with wrap_os_errors(f"write {directory}"):
        directory.mkdir(parents=True, exist_ok=True, mode=0o755)
    write_atomically(bundle, text, 0o644)
    apt = _apt_configuration(bundle)
    add_to_environment({**dict.fromkeys(_BUNDLES, str(bundle)), "APT_CONFIG": str(apt)})


def _apt_configuration(bundle: Path) -> Path:
    """A file for `APT_CONFIG`, beside what that names already."""
    given = environment().get("APT_CONFIG", "")
    own = f'#include "{given}";\n' if given else ""
    text = f'{own}Acquire::https::CAInfo "{bundle}";\n'
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    path = bundle.with_name(f"{name}.apt.conf")
    if given != str(path):  # a second call of this command
        write_atomically(path, text, 0o644)
    return path


def adopt_proxy(proxy: str, account: str, no_proxy: tuple[str, ...]) -> None:
    """Reaches others through the proxy. `account` is `user:password`, or ""."""
    if not proxy:
        return
    parts = urlsplit(proxy)
    user, colon, password = account.partition(":")
    access = f"{quote(user, safe='')}{colon}{quote(password, safe='')}@" if account else ""
    url = parts._replace(netloc=f"{access}{parts.netloc}").geturl()
    add_to_environment(_both_cases({"HTTP_PROXY": url, "HTTPS_PROXY": url}))
    add_to_environment(_both_cases({"NO_PROXY": ",".join(("localhost", "127.0.0.1", *no_proxy))}))


def _both_cases(values: Mapping[str, str]) -> dict[str, str]:
    """Of some programs only the small letters are read, of some only the capitals."""
    return {**values, **{name.lower(): value for name, value in values.items()}}


def _packaged_roots() -> str:
    """Those that the Python environment brings; "" before it is made."""
    if importlib.util.find_spec("certifi") is None:
        return ""
    import certifi  # rarely needed

    return Path(certifi.where()).read_text(encoding="utf-8")

"""Kind `http`: a server answers on loopback."""

import re
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

from agentbox.core.paths import Paths
from agentbox.plan.model import Probe

_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_BODY = 1 << 20  # bytes read


def check_http(probe: Probe, _paths: Paths, seconds: float) -> str:
    """One GET without redirects. Any host but loopback is rejected."""
    url = urlsplit(probe.url)
    if url.scheme != "http" or url.hostname not in _LOOPBACK:
        return f"{probe.url} is not on loopback"
    connection = HTTPConnection(url.hostname, url.port, timeout=seconds)
    try:
        connection.request("GET", f"{url.path or '/'}{'?' + url.query if url.query else ''}")
        response = connection.getresponse()
        body = response.read(_BODY).decode(errors="replace")
    except (OSError, HTTPException) as error:
        return f"{probe.url} does not respond: {error}"
    finally:
        connection.close()
    if response.status != probe.status:
        return f"{probe.url} returns {response.status}, not {probe.status}"
    if probe.body_regex and not re.search(probe.body_regex, body):
        return f"{probe.url} returns an unexpected body"
    return ""

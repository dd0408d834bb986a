"""The capabilities of a Solid server, probed when the slot opens."""

from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx

from agentbox.adapters.pods.json_patch import JSON_PATCH
from agentbox.adapters.pods.solid.connection import SolidConnection
from agentbox.adapters.pods.solid.responses import (
    is_agentbox_refusal,
    is_strong,
    media_types,
    parse_links,
    refusal_error,
)
from agentbox.core.slot_errors import PermissionDenied

N3_PATCH = "text/n3"
# an object in the root container; listings hide names with this prefix
PROBE_PATH = ".agentbox:probe"
_PROBE_DOUBLE_ENCODED = ".agentbox%3Aprobe"
_ABSENT = "agentbox-probe"  # a name that any server accepts, for OPTIONS
_AUXILIARY = ("acl", "describedby", "http://www.w3.org/ns/solid/terms#acl")


@dataclass(frozen=True, slots=True)
class SolidCapabilities:
    """`health_path` is requested by `health`. Names that end in one of `reserved_suffixes` belong
    to the server: access control and descriptions. `double_encoded`: listings encode some
    characters twice. `is_box`: the server is a box and implements P1 to P11 itself."""

    capabilities: frozenset[str] = frozenset({"list.paged"})
    patches: frozenset[str] = frozenset()
    health_path: str = ""
    reserved_suffixes: tuple[str, ...] = ()
    double_encoded: bool = False
    is_box: bool = False


async def probe_server(connection: SolidConnection) -> SolidCapabilities:
    """Write a small object and examine the response. A box refuses the name, which identifies it; a
    server without write access is used read-only. Raises the error of the root container."""
    body = b"agentbox looks here whether this server answers\n"
    put_response = await connection.request_raw(
        "PUT",
        PROBE_PATH,
        method="open",
        headers={"Content-Type": "text/plain"},
        content=body,
        idempotent=True,
    )
    if put_response.is_success:
        return await _server_capabilities(connection, put_response)
    if put_response.status_code == 400 and is_agentbox_refusal(put_response):
        return await _box_capabilities(connection)
    if put_response.status_code not in (401, 403, 405):
        raise refusal_error(connection.cfg, put_response, put_response.content, PROBE_PATH)
    head_response = await connection.request_raw("HEAD", "", method="open", idempotent=True)
    if not head_response.is_success:
        raise PermissionDenied(
            "cannot use pods: the server allows neither reading nor writing", scope="pods:read"
        )
    return SolidCapabilities(
        capabilities=SolidCapabilities().capabilities | _range_capability(head_response)
    )


async def _box_capabilities(connection: SolidConnection) -> SolidCapabilities:
    """A box implements P1 to P11 itself and reports the patch types of its own implementation."""
    options_response = await connection.request("OPTIONS", _ABSENT, method="open", idempotent=True)
    patches = media_types(options_response.headers, "accept-patch")
    capabilities = SolidCapabilities().capabilities | {"etag.strong", "etag.on_write", "range"}
    return SolidCapabilities(
        capabilities=capabilities | _patch_capabilities(patches, emulated=False),
        patches=patches,
        is_box=True,
    )


async def _server_capabilities(
    connection: SolidConnection, put_response: httpx.Response
) -> SolidCapabilities:
    head_response = await connection.request("HEAD", PROBE_PATH, method="open", idempotent=True)
    options_response = await connection.request_raw(
        "OPTIONS", PROBE_PATH, method="open", idempotent=True
    )
    patches = media_types(head_response.headers, "accept-patch") | media_types(
        options_response.headers, "accept-patch"
    )
    strong = is_strong(head_response.headers.get("etag"))
    tags = {"etag.strong"} if strong else set()
    if is_strong(put_response.headers.get("etag")):
        tags.add("etag.on_write")
    encoded_response = await connection.request_raw(
        "HEAD", _PROBE_DOUBLE_ENCODED, method="open", idempotent=True
    )
    return SolidCapabilities(
        capabilities=SolidCapabilities().capabilities
        | tags
        | _range_capability(head_response)
        | _patch_capabilities(patches, emulated=strong),
        patches=patches,
        health_path=PROBE_PATH,
        reserved_suffixes=_reserved_suffixes(head_response),
        double_encoded=encoded_response.is_success,
    )


def _range_capability(head_response: httpx.Response) -> frozenset[str]:
    return frozenset({"range"} if "bytes" in head_response.headers.get("accept-ranges", "") else ())


def _patch_capabilities(patches: frozenset[str], *, emulated: bool) -> frozenset[str]:
    json_capability = {"patch.json"} if emulated or JSON_PATCH in patches else set()
    return frozenset(json_capability | ({"patch.n3"} if N3_PATCH in patches else set()))


def _reserved_suffixes(head_response: httpx.Response) -> tuple[str, ...]:
    """Return the suffixes of the server's auxiliary resources, from the links of the probe."""
    probe_path = urlsplit(str(head_response.url)).path
    auxiliary_paths = {
        urlsplit(str(head_response.url.join(target))).path
        for rel, target in parse_links(head_response.headers)
        if rel in _AUXILIARY
    }
    return tuple(
        sorted(
            path.removeprefix(probe_path)
            for path in auxiliary_paths
            if path.startswith(probe_path) and path != probe_path
        )
    )

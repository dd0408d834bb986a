"""What a Solid server can, learned when the slot opens: it is asked, never recognised by its name."""

from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx

from agentbox.adapters.pods.json_patch import JSON_PATCH
from agentbox.adapters.pods.solid.answers import is_of_a_box, is_strong, links, refusal, types_of
from agentbox.adapters.pods.solid.line import Line
from agentbox.core.slot_errors import PermissionDenied

N3_PATCH = "text/n3"
PROBE = ".agentbox:probe"  # an object of ours in the root container; no listing shows a name that starts so
_PROBED_TWICE = ".agentbox%3Aprobe"
_ABSENT = "agentbox-probe"  # a name that any server takes, for OPTIONS
_AUXILIARY = ("acl", "describedby", "http://www.w3.org/ns/solid/terms#acl")


@dataclass(frozen=True, slots=True)
class Facts:
    """`pulse` is what `health` asks for. Names that end in one of `reserved` are the server's own: who may do what, and
    descriptions. `twice`: it lists some characters encoded twice. `strict`: it is a box, which keeps P1 to P11 by itself."""

    capabilities: frozenset[str] = frozenset({"list.paged"})
    patches: frozenset[str] = frozenset()
    pulse: str = ""
    reserved: tuple[str, ...] = ()
    twice: bool = False
    strict: bool = False


async def learn(line: Line) -> Facts:
    """Writes a small object and looks at it. A box, which takes no such name, says by that what it is; a server that lets
    nobody write is used for reading. Raises what the root container's own answer stands for."""
    body = b"agentbox looks here whether this server answers\n"
    put = await line.raw("PUT", PROBE, method="open", headers={"Content-Type": "text/plain"}, content=body, again=True)
    if put.is_success:
        return await _of_server(line, put)
    if put.status_code == 400 and is_of_a_box(put):
        return await _of_box(line)
    if put.status_code not in (401, 403, 405):
        raise refusal(line.cfg, put, put.content, PROBE)
    seen = await line.raw("HEAD", "", method="open", again=True)
    if not seen.is_success:
        raise PermissionDenied("cannot use pods: the server lets us neither read nor write", scope="pods:read")
    return Facts(capabilities=Facts().capabilities | _range(seen))


async def _of_box(line: Line) -> Facts:
    """An agentbox keeps P1 to P11 itself; what patches its own class takes it says."""
    told = await line.ask("OPTIONS", _ABSENT, method="open", again=True)
    patches = types_of(told.headers, "accept-patch")
    known = Facts().capabilities | {"etag.strong", "etag.on_write", "range"}
    return Facts(capabilities=known | _patch(patches, emulated=False), patches=patches, strict=True)


async def _of_server(line: Line, put: httpx.Response) -> Facts:
    seen = await line.ask("HEAD", PROBE, method="open", again=True)
    told = await line.raw("OPTIONS", PROBE, method="open", again=True)
    patches = types_of(seen.headers, "accept-patch") | types_of(told.headers, "accept-patch")
    strong = is_strong(seen.headers.get("etag"))
    tags = {"etag.strong"} if strong else set()
    if is_strong(put.headers.get("etag")):
        tags.add("etag.on_write")
    twin = await line.raw("HEAD", _PROBED_TWICE, method="open", again=True)
    return Facts(
        capabilities=Facts().capabilities | tags | _range(seen) | _patch(patches, emulated=strong), patches=patches,
        pulse=PROBE, reserved=_reserved(seen), twice=twin.is_success,
    )  # fmt: skip


def _range(seen: httpx.Response) -> frozenset[str]:
    return frozenset({"range"} if "bytes" in seen.headers.get("accept-ranges", "") else ())


def _patch(patches: frozenset[str], *, emulated: bool) -> frozenset[str]:
    json = {"patch.json"} if emulated or JSON_PATCH in patches else set()
    return frozenset(json | ({"patch.n3"} if N3_PATCH in patches else set()))


def _reserved(seen: httpx.Response) -> tuple[str, ...]:
    """What the server appends to a name for its own resources, from the links of the probe."""
    own = urlsplit(str(seen.url)).path
    named = {urlsplit(str(seen.url.join(target))).path for rel, target in links(seen.headers) if rel in _AUXILIARY}
    return tuple(sorted(path.removeprefix(own) for path in named if path.startswith(own) and path != own))

"""A container of pods as a document: Turtle (LDP 1.0), JSON-LD (expanded form), or the page as
JSON.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from agentbox.adapters.runtime.adapter import Page
from agentbox.contracts.pods import PodMeta
from agentbox.core.clock import to_wire

LDP = "http://www.w3.org/ns/ldp#"
DCT = "http://purl.org/dc/terms/"
POSIX = "http://www.w3.org/ns/posix/stat#"
XSD = "http://www.w3.org/2001/XMLSchema#"
# class for a media type, named as by Solid servers
MEDIA = "http://www.w3.org/ns/iana/media-types/"
CONTAINER_LINKS = (f'<{LDP}BasicContainer>; rel="type"', f'<{LDP}Resource>; rel="type"')
OBJECT_LINKS = (f'<{LDP}Resource>; rel="type"',)
_ESSENCE = re.compile(r"[a-z0-9!&$^_.+-]+/[a-z0-9!&$^_.+-]+")  # RFC 6838 4.2, without #
_PREFIXES = (
    f"@prefix ldp: <{LDP}>.\n@prefix dct: "
    f"<{DCT}>.\n@prefix posix: <{POSIX}>.\n@prefix xsd: <{XSD}>.\n"
)


def _iri(path: str) -> str:
    """The path part of the URL of a container or object."""
    return f"/v1/pods/{quote(path, safe='/')}"


def turtle(path: str, page: Page[PodMeta]) -> bytes:
    """The container and its members on this page."""
    contains = "".join(f";\n    ldp:contains <{_iri(meta.path)}>" for meta in page.items)
    text = (
        f"{_PREFIXES}<{_iri(path)}> a ldp:BasicContainer, ldp:Container, ldp:Resource{contains}.\n"
    )
    return (text + "".join(map(_member, page.items))).encode()


def _kinds(meta: PodMeta) -> list[str]:
    """The classes of an object. A media type that is not valid in an IRI is omitted."""
    if meta.kind == "container":
        return [f"{LDP}Container", f"{LDP}Resource"]
    essence = meta.content_type.partition(";")[0].strip().lower()
    return [
        f"{LDP}Resource",
        *([f"{MEDIA}{essence}#Resource"] if _ESSENCE.fullmatch(essence) else []),
    ]


def _member(meta: PodMeta) -> str:
    kinds = ", ".join(f"<{kind}>" for kind in _kinds(meta))
    size = "" if meta.size is None else f";\n    posix:size {meta.size}"
    return (
        f"<{_iri(meta.path)}> a {kinds}{size};\n"
        f'    dct:modified "{to_wire(meta.modified_at)}"^^xsd:dateTime.\n'
    )


def json_ld(path: str, page: Page[PodMeta]) -> list[dict[str, Any]]:
    """The same triples as JSON-LD."""
    kinds = [f"{LDP}{kind}" for kind in ("BasicContainer", "Container", "Resource")]
    members = [{"@id": _iri(meta.path)} for meta in page.items]
    return [{"@id": _iri(path), "@type": kinds, f"{LDP}contains": members}, *map(_node, page.items)]


def _node(meta: PodMeta) -> dict[str, Any]:
    modified = {"@type": f"{XSD}dateTime", "@value": to_wire(meta.modified_at)}
    size = {} if meta.size is None else {f"{POSIX}size": [{"@value": meta.size}]}
    return {"@id": _iri(meta.path), "@type": _kinds(meta), f"{DCT}modified": [modified], **size}


# Media type -> the document of a page; the first is the default (LDP 1.0, 4.3.2.2).
FORMS: Mapping[str, Callable[[str, Page[PodMeta]], Any]] = {
    "text/turtle": turtle,
    "application/ld+json": json_ld,
    "application/json": lambda _, page: page,
}

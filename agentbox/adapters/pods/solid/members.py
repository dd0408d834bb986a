"""The members of a container from its JSON-LD document (LDP 1.0, 5.2.1.5).

Only expanded JSON-LD is read. A document with a context is refused, so nothing is ever fetched to
read a listing (docs/adr/0019).
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import unquote, urljoin, urlsplit

JSON_LD = "application/ld+json"
MAX_DOCUMENT = 64 << 20  # bytes of one document
_LDP = "http://www.w3.org/ns/ldp#"
_CONTAINS = f"{_LDP}contains"
_KINDS = frozenset({f"{_LDP}Container", f"{_LDP}BasicContainer"})
_MODIFIED = "http://purl.org/dc/terms/modified"
_SIZE = "http://www.w3.org/ns/posix/stat#size"
_MEDIA_TYPE_PREFIX = "http://www.w3.org/ns/iana/media-types/"
# Characters that Community Solid Server with a file backend encodes twice in listings: those
# invalid in Windows file names.
_DOUBLE_ENCODED = {
    "%3A": ":",
    "%3C": "<",
    "%3E": ">",
    "%22": '"',
    "%7C": "|",
    "%3F": "?",
    "%2A": "*",
}


class UnreadableListing(ValueError):
    """The document is not expanded JSON-LD."""


@dataclass
class ContainerMember:
    """A listed member; None means that the listing did not include the value."""

    name: str
    kind: Literal["object", "container"]
    types: set[str] = field(default_factory=set)
    size: int | None = None
    modified_at: datetime | None = None

    @property
    def media_type(self) -> str:
        """The media type, "" if the listing has none."""
        media_types = sorted(kind for kind in self.types if kind.startswith(_MEDIA_TYPE_PREFIX))
        return (
            media_types[0].removeprefix(_MEDIA_TYPE_PREFIX).removesuffix("#Resource")
            if media_types
            else ""
        )


def parse_members(document: bytes, url: str, *, double_encoded: bool) -> dict[str, ContainerMember]:
    """Return the direct members of the container at `url` by name. `double_encoded`: the server
    encodes some characters twice.

    Raises UnreadableListing. Listed addresses that are not direct members are skipped.
    """
    nodes = list(_nodes(document))
    container = _segments(url)
    by_iri: dict[str, ContainerMember] = {}
    for node in nodes:
        if _segments(urljoin(url, str(node.get("@id", "")))) == container:
            for target in _as_mappings(node.get(_CONTAINS)):
                iri = urljoin(url, str(target.get("@id", "")))
                name = _name_below(container, iri)
                if name is not None:
                    kind: Literal["object", "container"] = (
                        "container" if iri.endswith("/") else "object"
                    )
                    by_iri[iri] = ContainerMember(_decode_name(name, double_encoded), kind)
    for node in nodes:
        if (member := by_iri.get(urljoin(url, str(node.get("@id", ""))))) is not None:
            _describe(member, node)
    return {member.name: member for member in by_iri.values()}


def _describe(member: ContainerMember, node: Mapping[str, Any]) -> None:
    member.types |= {str(kind) for kind in _as_list(node.get("@type"))}
    for value in _as_mappings(node.get(_SIZE)):
        if str(value.get("@value")).isdecimal():
            member.size = int(value["@value"])
    for value in _as_mappings(node.get(_MODIFIED)):
        try:
            modified_at = datetime.fromisoformat(str(value.get("@value")))
        except ValueError:
            continue
        member.modified_at = (
            modified_at.replace(tzinfo=modified_at.tzinfo or UTC)
            .astimezone(UTC)
            .replace(microsecond=0)
        )


def _nodes(document: bytes) -> Iterator[Mapping[str, Any]]:
    try:
        data = json.loads(document)
    except (ValueError, RecursionError):
        raise UnreadableListing("is not valid JSON") from None
    pending = _as_list(data)
    while pending:
        node = pending.pop()
        if not isinstance(node, Mapping) or "@context" in node:
            raise UnreadableListing("is not expanded JSON-LD")
        pending += _as_list(node.get("@graph"))
        yield node


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [] if value is None else [value]


def _as_mappings(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in _as_list(value) if isinstance(item, Mapping)]


def _segments(url: str) -> tuple[str, str, tuple[str, ...]]:
    """Return scheme, host and the decoded path segments, so that equivalent addresses are equal."""
    url_parts = urlsplit(url)
    return (
        url_parts.scheme,
        url_parts.netloc,
        tuple(unquote(segment, errors="surrogateescape") for segment in url_parts.path.split("/")),
    )


def _name_below(container: tuple[str, str, tuple[str, ...]], iri: str) -> str | None:
    """Return the name of a direct member; None for any other address."""
    scheme, host, segments = _segments(iri.removesuffix("/"))
    if (scheme, host) != container[:2] or segments[:-1] != container[2][:-1] or "/" in segments[-1]:
        return None
    return segments[-1]


def _decode_name(name: str, double_encoded: bool) -> str:
    for encoded, char in _DOUBLE_ENCODED.items() if double_encoded else ():
        name = name.replace(encoded, char)
    return name

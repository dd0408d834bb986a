"""The members of a container, as its JSON-LD document lists them (LDP 1.0, 5.2.1.5).

Only expanded JSON-LD is read, which needs no context: a document that has one is refused, so nothing is ever fetched to
understand a listing (docs/adr/0019).
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import unquote, urljoin, urlsplit

JSON_LD = "application/ld+json"
CAP = 64 << 20  # bytes of one document
_LDP = "http://www.w3.org/ns/ldp#"
_CONTAINS = f"{_LDP}contains"
_KINDS = frozenset({f"{_LDP}Container", f"{_LDP}BasicContainer"})
_MODIFIED = "http://purl.org/dc/terms/modified"
_SIZE = "http://www.w3.org/ns/posix/stat#size"
_MEDIA = "http://www.w3.org/ns/iana/media-types/"
# What Community Solid Server with a file backend lists encoded once more than it is: what no file of Windows may hold.
_TWICE = {"%3A": ":", "%3C": "<", "%3E": ">", "%22": '"', "%7C": "|", "%3F": "?", "%2A": "*"}


class NotReadable(ValueError):
    """A document that is no expanded JSON-LD."""


@dataclass
class Member:
    """A member as listed: what is None was not said."""

    name: str
    kind: Literal["object", "container"]
    types: set[str] = field(default_factory=set)
    size: int | None = None
    modified_at: datetime | None = None

    @property
    def media_type(self) -> str:
        """Its media type, "" when the listing names none."""
        named = sorted(kind for kind in self.types if kind.startswith(_MEDIA))
        return named[0].removeprefix(_MEDIA).removesuffix("#Resource") if named else ""


def members(document: bytes, url: str, *, twice: bool) -> dict[str, Member]:
    """By name, the direct members of the container at `url`. `twice`: the server encodes some characters twice.

    Raises NotReadable. What is listed and is no direct member by its address is left out.
    """
    nodes = list(_nodes(document))
    here = _segments(url)
    found: dict[str, Member] = {}
    for node in nodes:
        if _segments(urljoin(url, str(node.get("@id", "")))) == here:
            for target in _items(node.get(_CONTAINS)):
                iri = urljoin(url, str(target.get("@id", "")))
                name = _name_below(here, iri)
                if name is not None:
                    kind: Literal["object", "container"] = "container" if iri.endswith("/") else "object"
                    found[iri] = Member(_decoded(name, twice), kind)
    for node in nodes:
        if (member := found.get(urljoin(url, str(node.get("@id", ""))))) is not None:
            _describe(member, node)
    return {member.name: member for member in found.values()}


def _describe(member: Member, node: Mapping[str, Any]) -> None:
    member.types |= {str(kind) for kind in _list(node.get("@type"))}
    for value in _items(node.get(_SIZE)):
        if str(value.get("@value")).isdecimal():
            member.size = int(value["@value"])
    for value in _items(node.get(_MODIFIED)):
        try:
            at = datetime.fromisoformat(str(value.get("@value")))
        except ValueError:
            continue
        member.modified_at = at.replace(tzinfo=at.tzinfo or UTC).astimezone(UTC).replace(microsecond=0)


def _nodes(document: bytes) -> Iterator[Mapping[str, Any]]:
    try:
        data = json.loads(document)
    except (ValueError, RecursionError):
        raise NotReadable("is no JSON") from None
    pending = _list(data)
    while pending:
        node = pending.pop()
        if not isinstance(node, Mapping) or "@context" in node:
            raise NotReadable("is no expanded JSON-LD")
        pending += _list(node.get("@graph"))
        yield node


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [] if value is None else [value]


def _items(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in _list(value) if isinstance(item, Mapping)]


def _segments(url: str) -> tuple[str, str, tuple[str, ...]]:
    """Scheme, host and the decoded segments of the path: two spellings of one address are equal."""
    parts = urlsplit(url)
    return parts.scheme, parts.netloc, tuple(unquote(one, errors="surrogateescape") for one in parts.path.split("/"))


def _name_below(here: tuple[str, str, tuple[str, ...]], iri: str) -> str | None:
    """The name of a direct member; None for any other address."""
    scheme, host, segments = _segments(iri.removesuffix("/"))
    if (scheme, host) != here[:2] or segments[:-1] != here[2][:-1] or "/" in segments[-1]:
        return None
    return segments[-1]


def _decoded(name: str, twice: bool) -> str:
    for found, char in _TWICE.items() if twice else ():
        name = name.replace(found, char)
    return name

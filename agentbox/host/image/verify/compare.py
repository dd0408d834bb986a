"""Finds the first difference between two images, layers or folders, and says it in one line."""

from dataclasses import dataclass, fields

from agentbox.host.image.verify.members import Archive, Member, Members

_SHOWN = 12


@dataclass(frozen=True)
class Difference:
    """`where` is "layer app", a derivation's name, or "" for the image as a whole."""

    where: str
    path: str
    what: str
    expected: str
    found: str

    def __str__(self) -> str:
        place = ", ".join(part for part in (self.where, self.path) if part)
        what = f"{self.what} " if self.what else ""
        return f"{place}: {what}{_short(self.expected)} != {_short(self.found)}"


def _short(text: str) -> str:
    bare = text.removeprefix("sha256:")
    return f"{bare[:_SHOWN]}…" if len(bare) == 64 else text or "none"


def first_of_members(where: str, expected: Members, found: Members) -> Difference | None:
    """By path, what follows from other files last; at a path: missing, type, mode, owner, size, content, link target."""
    for path in sorted(expected.keys() | found.keys(), key=lambda path: (_follows(path), path)):
        one, other = expected.get(path), found.get(path)
        if one is None or other is None:
            present, absent = "present", "missing"
            return Difference(where, path, "", present if one else absent, present if other else absent)
        if one != other:
            return _first_field(where, path, one, other)
    return None


def _follows(path: str) -> bool:
    """True for byte code and lists of files: they differ because something else does."""
    return path.endswith((".pyc", "/RECORD")) or path.startswith("opt/agentbox/share/files/")


def _first_field(where: str, path: str, one: Member, other: Member) -> Difference | None:
    for each in fields(Member):
        left, right = getattr(one, each.name), getattr(other, each.name)
        if left != right:
            return Difference(where, path, each.name, str(left), str(right))
    return None


def first_of_images(expected: Archive, found: Archive) -> Difference | None:
    """The first differing layer's first differing path, else the configs. None when the image ids are equal."""
    if expected.image_id == found.image_id:
        return None
    for index, (one, other) in enumerate(zip(expected.diff_ids, found.diff_ids, strict=False)):
        if one != other:
            where = f"layer {expected.names[index]}"
            named = first_of_members(where, expected.members(index), found.members(index))
            return named or Difference(where, "", "diff id", one, other)
    if len(expected.diff_ids) != len(found.diff_ids):
        return Difference("image", "", "layers", str(len(expected.diff_ids)), str(len(found.diff_ids)))
    return Difference("image config", "", "sha256", expected.image_id, found.image_id)

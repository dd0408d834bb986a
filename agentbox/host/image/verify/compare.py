"""Finds the first difference between two images, layers or directories, and describes it in one
line.
"""

from dataclasses import dataclass, fields

from agentbox.host.image.verify.members import Archive, ArchiveMember, Members

_DIGEST_CHARS = 12


@dataclass(frozen=True)
class Difference:
    """`location` is "layer app", a derivation's name, or "" for the whole image."""

    location: str
    path: str
    attribute: str
    expected: str
    actual: str

    def __str__(self) -> str:
        location = ", ".join(text for text in (self.location, self.path) if text)
        prefix = f"{self.attribute} " if self.attribute else ""
        return f"{location}: {prefix}{_short(self.expected)} != {_short(self.actual)}"


def _short(text: str) -> str:
    bare = text.removeprefix("sha256:")
    return f"{bare[:_DIGEST_CHARS]}…" if len(bare) == 64 else text or "none"


def first_member_difference(location: str, expected: Members, actual: Members) -> Difference | None:
    """Compare by path, derived files last; at a path: missing, type, mode, owner, size, content,
    link target.
    """
    for path in sorted(expected.keys() | actual.keys(), key=lambda path: (_is_derived(path), path)):
        expected_member, actual_member = expected.get(path), actual.get(path)
        if expected_member is None or actual_member is None:
            present, absent = "present", "missing"
            return Difference(
                location,
                path,
                "",
                present if expected_member else absent,
                present if actual_member else absent,
            )
        if expected_member != actual_member:
            return _first_field_difference(location, path, expected_member, actual_member)
    return None


def _is_derived(path: str) -> bool:
    """True for bytecode and lists of files: they differ because another file does."""
    return path.endswith((".pyc", "/RECORD")) or path.startswith("opt/agentbox/share/files/")


def _first_field_difference(
    location: str, path: str, expected: ArchiveMember, actual: ArchiveMember
) -> Difference | None:
    for member_field in fields(ArchiveMember):
        expected_value, actual_value = (
            getattr(expected, member_field.name),
            getattr(actual, member_field.name),
        )
        if expected_value != actual_value:
            return Difference(
                location, path, member_field.name, str(expected_value), str(actual_value)
            )
    return None


def first_image_difference(expected: Archive, actual: Archive) -> Difference | None:
    """Return the first differing path of the first differing layer, else the configs. None if the
    image ids are equal.
    """
    if expected.image_id == actual.image_id:
        return None
    for index, (expected_id, actual_id) in enumerate(
        zip(expected.diff_ids, actual.diff_ids, strict=False)
    ):
        if expected_id != actual_id:
            location = f"layer {expected.names[index]}"
            difference = first_member_difference(
                location, expected.members(index), actual.members(index)
            )
            return difference or Difference(location, "", "diff id", expected_id, actual_id)
    if len(expected.diff_ids) != len(actual.diff_ids):
        return Difference(
            "image", "", "layers", str(len(expected.diff_ids)), str(len(actual.diff_ids))
        )
    return Difference("image config", "", "sha256", expected.image_id, actual.image_id)

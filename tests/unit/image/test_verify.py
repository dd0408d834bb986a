"""Verification names the first path that differs, in a fixed order."""

from pathlib import Path

import pytest
from small_images import archive, layer

from agentbox.core.errors import AgentboxError
from agentbox.host.image.verify.compare import first_image_difference, first_member_difference
from agentbox.host.image.verify.members import Archive, ArchiveMember, path_members
from agentbox.host.image.verify.steps import (
    check_blobs,
    check_digests,
    check_directory,
    check_rendered,
    compare_archives,
)

FILE = ArchiveMember("file", "644", "0:0", 3, "a" * 64, "")


def images(folder: Path, changed: dict[str, bytes]) -> tuple[Path, Path]:
    """Two images that differ in layer app."""
    for name, files in (("one", {"opt/x": b"1", "opt/y": b"2"}), ("two", changed)):
        (folder / name).mkdir()
        archive(
            folder / name,
            [layer(folder / name, "base", {"usr/a": b"a"}), layer(folder / name, "app", files)],
        )
    return folder / "one/image.tar", folder / "two/image.tar"


def test_equal_images_are_same(tmp_path: Path) -> None:
    """Built twice, compared: no difference."""
    one, two = images(tmp_path, {"opt/x": b"1", "opt/y": b"2"})
    assert one.read_bytes() == two.read_bytes()
    assert first_image_difference(Archive(one), Archive(two)) is None


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"opt/x": b"1", "opt/y": b"3"}, "layer app, opt/y: sha256 d4735e3a265e… != 4e07408562be…"),
        ({"opt/x": b"1", "opt/y": b"22"}, "layer app, opt/y: size 1 != 2"),
        ({"opt/x": b"1"}, "layer app, opt/y: present != missing"),
        ({"opt/x": b"1", "opt/y": b"2", "opt/z": b""}, "layer app, opt/z: missing != present"),
    ],
)
def test_a_planted_change_is_named(tmp_path: Path, changed: dict[str, bytes], said: str) -> None:
    """By layer and path, with both values."""
    one, two = images(tmp_path, changed)
    step = compare_archives(Archive(one), two)
    assert (step.outcome, step.said) == ("different", said)


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (None, ""),
        (ArchiveMember("link", "644", "0:0", 0, "", "x"), "type"),
        (ArchiveMember("file", "755", "1:1", 4, "b" * 64, ""), "mode"),
        (ArchiveMember("file", "644", "1:1", 4, "b" * 64, ""), "owner"),
        (ArchiveMember("file", "644", "0:0", 4, "b" * 64, ""), "size"),
        (ArchiveMember("file", "644", "0:0", 3, "b" * 64, ""), "sha256"),
        (ArchiveMember("file", "644", "0:0", 3, "a" * 64, "x"), "target"),
    ],
)
def test_the_order_of_differences(other: ArchiveMember | None, what: str) -> None:
    """Missing, type, mode, owner, size, content, link target: the first difference is reported."""
    found = first_member_difference("layer x", {"p": FILE}, {"p": other} if other else {})
    assert found is not None
    assert found.attribute == what


def test_sources_are_named_before_what_follows_from_them() -> None:
    """A changed module changes its byte code, RECORD and the listing too: the module is reported."""
    paths = [
        "opt/agentbox/share/files/app.json",
        "s/__pycache__/a.pyc",
        "s/x.dist-info/RECORD",
        "s/z.py",
    ]
    other = ArchiveMember("file", "644", "0:0", 3, "b" * 64, "")
    found = first_member_difference(
        "layer app", dict.fromkeys(paths, FILE), dict.fromkeys(paths, other)
    )
    assert found is not None
    assert found.path == "s/z.py"


def test_a_flipped_byte_in_a_blob_is_found(tmp_path: Path) -> None:
    """The quick check hashes every blob."""
    one, _ = images(tmp_path, {"opt/x": b"1"})
    assert check_blobs(Archive(one)).outcome == "same"
    data = bytearray(one.read_bytes())
    at = data.rindex(b"\x1f\x8b") + 30
    data[at] ^= 1
    one.write_bytes(data)
    assert check_blobs(Archive(one)).outcome == "different"


def test_the_rendered_files_are_compared(tmp_path: Path) -> None:
    """Layer config against a new rendering: equal, changed, missing."""
    archive(tmp_path, [layer(tmp_path, "config", {"etc/supervisord.conf": b"[x]"})])
    opened = Archive(tmp_path / "image.tar")
    assert check_rendered({"/etc/supervisord.conf": b"[x]"}, opened).outcome == "same"
    changed = check_rendered({"/etc/supervisord.conf": b"[y]"}, opened)
    assert "layer config, etc/supervisord.conf: sha256" in changed.said
    assert "missing" in check_rendered({"/etc/other": b""}, opened).said


def test_the_folder_of_the_box_is_compared(tmp_path: Path) -> None:
    """One byte in the compose file is found and named."""
    (tmp_path / "docker-compose.yml").write_bytes(b"services: {}")
    assert check_directory({"docker-compose.yml": b"services: {}"}, tmp_path).outcome == "same"
    found = check_directory({"docker-compose.yml": b"services: {} "}, tmp_path)
    assert found.outcome == "different"
    assert "docker-compose.yml: sha256" in found.said


def test_a_file_of_a_layer_is_read(tmp_path: Path) -> None:
    """By layer and path; a missing one is reported with both sides."""
    one, _ = images(tmp_path, {"opt/x": b"1"})
    assert Archive(one).read("app", "opt/y") == b"2"
    with pytest.raises(AgentboxError, match=r"cannot read opt/z .*layer app has no such file"):
        Archive(one).read("app", "opt/z")


def test_the_chain_names_the_digest_that_breaks() -> None:
    """Every digest is compared; one that is not stated at all is a difference."""
    expected = {"plan": "sha256:" + "1" * 64, "lock": "sha256:" + "2" * 64}
    assert check_digests(expected, dict(expected), "the sentinel").outcome == "same"
    broken = check_digests(expected, {"plan": expected["plan"], "lock": None}, "the sentinel")
    assert broken.said == "the sentinel, lock: digest 222222222222… != none"


def test_store_paths_are_compared_without_owner(tmp_path: Path) -> None:
    """The store keeps one bit of the mode and no owner: nothing else of a directory is compared."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a/x").write_bytes(b"1")
    (tmp_path / "a/l").symlink_to("x")
    found = path_members(tmp_path / "a")
    assert (found["x"].mode, found["x"].owner, found["l"].target) == ("0", "", "x")

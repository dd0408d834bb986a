"""Cache entries of a manifest are invalid after any change of its file."""

import os
import time
from pathlib import Path

import pytest

from agentbox.core.paths import HostPaths
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.manifest_cache import FILE_NAME, MAX_ENTRIES, ManifestCache, ManifestInfo

TEXT = '[meta]\nschema_version = 1\nname = "one"\n'


@pytest.fixture
def manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A manifest old enough that a change is visible."""
    (tmp_path / "state").mkdir()
    monkeypatch.setenv("AGENTBOX_STATE_DIR", str(tmp_path / "state"))
    path = tmp_path / "agentbox.toml"
    path.write_text(TEXT)
    settled(path)
    return path


def settled(path: Path) -> None:
    """Returns a tenth of a second after its last change."""
    while time.time_ns() - path.stat().st_ctime_ns < 100_000_000:
        continue


def index(manifest: Path) -> ManifestCache:
    return ManifestCache(HostPaths.for_this_user().state_root, manifest)


def test_a_second_command_reads_no_manifest(
    manifest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither for the state directory nor for the drift of `status`."""
    first = CliContext(manifest_argument=manifest)
    applied = first.apply_fingerprints()
    assert first.state().directory.name == "one"
    monkeypatch.setattr(CliContext, "load_manifest", lambda _self: pytest.fail("it was read"))
    second = CliContext(manifest_argument=manifest)
    assert second.state() == first.state()
    assert second.apply_fingerprints() == applied
    assert applied["meta.name"].startswith("recreate ")


def test_an_edit_of_equal_size_in_place_is_seen(manifest: Path) -> None:
    """Even with restored times: programs cannot set the ctime of an inode."""
    assert CliContext(manifest_argument=manifest).state().directory.name == "one"
    before = manifest.stat()
    with manifest.open("r+") as stream:
        stream.write(TEXT.replace("one", "two"))
    os.utime(manifest, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert CliContext(manifest_argument=manifest).state().directory.name == "two"


def test_a_file_that_was_just_written_is_not_kept(tmp_path: Path, manifest: Path) -> None:
    """A change within the same clock tick would be invisible."""
    manifest.write_text(TEXT)
    index(manifest).store(ManifestInfo("one"))
    assert not (tmp_path / "state" / FILE_NAME).exists()


def test_other_code_makes_what_is_compared_anew(manifest: Path) -> None:
    """Another release may have other defaults."""
    index(manifest).store(ManifestInfo("one", {"meta.name": "recreate old"}, "of other code"))
    assert (
        CliContext(manifest_argument=manifest).apply_fingerprints()["meta.name"] != "recreate old"
    )


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", "\xff", '{"PATH": 1}', '{"PATH": {"identity": "ID", "name": "../../etc"}}'],
)
def test_a_damaged_index_costs_time_only(tmp_path: Path, manifest: Path, text: str) -> None:
    """It is rebuilt, and its name cannot be a path."""
    kept = tmp_path / "state" / FILE_NAME
    found = manifest.stat()
    identity = [found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]
    kept.write_bytes(
        text.replace("PATH", str(manifest)).replace('"ID"', str(identity)).encode("latin-1")
    )
    assert CliContext(manifest_argument=manifest).state().directory.name == "one"
    assert index(manifest).read() == ManifestInfo("one", None, "")


def test_the_index_does_not_grow_without_end(tmp_path: Path, manifest: Path) -> None:
    """The most recently used manifests are stored."""
    paths = [tmp_path / f"{number}.toml" for number in range(MAX_ENTRIES + 3)]
    for path in paths:
        path.write_text(TEXT)
    settled(paths[-1])
    for path in paths:
        index(path).store(ManifestInfo("one"))
    assert [index(path).read() is None for path in paths] == [True] * 3 + [False] * MAX_ENTRIES


def test_a_folder_that_cannot_be_written_is_no_error(
    manifest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor a missing one: reading does not create it."""
    monkeypatch.setenv("AGENTBOX_STATE_DIR", "/proc/self/nowhere")
    assert CliContext(manifest_argument=manifest).state().directory.name == "one"
    monkeypatch.setenv("AGENTBOX_STATE_DIR", "/proc/self")
    assert CliContext(manifest_argument=manifest).state().directory.name == "one"

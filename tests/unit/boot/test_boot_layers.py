"""Phase B6: compares the files of a layer with its record."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agentbox.box.boot.errors import BootError
from agentbox.box.boot.steps import b6_programs
from agentbox.box.probes.layer_files import AT_BOOT
from agentbox.box.probes.suite import run_probe
from agentbox.core.paths import Paths
from agentbox.plan.model import Probe

FILES = {"/opt/lib/a": 3, "/opt/lib/b": 4, "/opt/lib/deep/c": 0, "/top": 2}


class Said:
    """A context of a boot without programs, below a directory; `told` is what it emitted."""

    def __init__(self, prefix: Path) -> None:
        self.paths, self.plan, self.told = Paths(prefix), SimpleNamespace(programs=()), []

    def emit(self, _event: str, **fields: Any) -> None:
        self.told.append((fields["capability"], fields["reason"]))


@pytest.fixture
def context(tmp_path: Path) -> Any:
    """Every file of FILES exists, and is recorded."""
    for path, size in FILES.items():
        file = tmp_path / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x" * size)
    made = Said(tmp_path)
    made.paths.layer_files.mkdir(parents=True)
    package = {"count": len(FILES), "size": sum(FILES.values()), "files": FILES}
    (made.paths.layer_files / "base.json").write_text(json.dumps({"packages": {"p": package}}))
    return made


def below(context: Any, path: str) -> Path:
    """Where a path of the record is on this machine."""
    return Path(f"{context.paths.prefix}{path}")


def faults(context: Any) -> list[tuple[str, str]]:
    with pytest.raises(BootError):
        b6_programs.run(context)
    found: list[tuple[str, str]] = context.told
    return found


def test_what_is_as_recorded_passes(context: Any) -> None:
    """Files beside the recorded ones do not count."""
    (context.paths.prefix / "opt/lib/more").touch()
    b6_programs.run(context)
    assert context.told == []


def test_each_file_counts(context: Any) -> None:
    """Two files swapped: neither count nor sum is wrong, and both are named."""
    one, other = below(context, "/opt/lib/a"), below(context, "/opt/lib/b")
    one.write_bytes(b"four")
    other.write_bytes(b"thr")
    built = "the image was built with"
    assert faults(context) == [
        ("/opt/lib/a", f"has 4 bytes, {built} 3"),
        ("/opt/lib/b", f"has 3 bytes, {built} 4"),
    ]


def test_a_missing_file_and_a_missing_folder_are_named(context: Any) -> None:
    """Each missing file, by its path."""
    below(context, "/top").unlink()
    below(context, "/opt/lib/deep/c").unlink()
    below(context, "/opt/lib/deep").rmdir()
    assert sorted(faults(context)) == [("/opt/lib/deep/c", "is missing"), ("/top", "is missing")]


def test_a_link_is_not_the_file_that_it_leads_to(context: Any) -> None:
    """A name that became a link has the size of the link."""
    file = below(context, "/opt/lib/b")
    file.rename(file.with_name("away"))
    file.symlink_to("away" * 5)
    assert [path for path, _ in faults(context)] == ["/opt/lib/b"]


def test_without_records_nothing_is_asked(tmp_path: Path) -> None:
    """The process engine has none."""
    b6_programs.run(Said(tmp_path))  # type: ignore[arg-type]


def test_a_boot_compares_what_it_needs_first_and_the_deep_probe_all(context: Any) -> None:
    """Of a large image: a damaged loader ends the boot; a damaged page of a package is found after the seal."""
    loader, page = "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", "/usr/share/doc/0/page"
    files = {f"/usr/share/doc/{number}/page": 1 for number in range(AT_BOOT)} | {loader: 1}
    for path, size in files.items():
        below(context, path).parent.mkdir(parents=True, exist_ok=True)
        below(context, path).write_bytes(b"x" * size)
    record = {"packages": {"p": {"count": len(files), "size": len(files), "files": files}}}
    (context.paths.layer_files / "base.json").write_text(json.dumps(record))
    b6_programs.run(context)
    probe = Probe(id="image-files", feature="core", kind="layer-files", stage="deep")
    assert run_probe(probe, context.paths).detail == ""
    last = f"/usr/share/doc/{AT_BOOT - 1}/page"
    below(context, last).unlink()
    below(context, page).write_bytes(b"")
    result = run_probe(probe, context.paths)
    assert result.detail == f"{page} has 0 bytes, the image was built with 1, and 1 more"
    below(context, page).write_bytes(b"x")
    b6_programs.run(context)
    below(context, loader).write_bytes(b"")
    assert faults(context) == [(loader, "has 0 bytes, the image was built with 1")]

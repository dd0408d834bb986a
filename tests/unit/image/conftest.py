"""Makers of small real packages: a .deb, a wheel, an npm tarball."""

import io
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from zipfile import ZipFile

import pytest

from agentbox.host.image.tree.assemble import Tree


def _tar(members: list[tarfile.TarInfo], contents: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz") as tar:
        for info in members:
            tar.addfile(info, io.BytesIO(contents.get(info.name, b"")))
    return buffer.getvalue()


def _ar(members: Mapping[str, bytes]) -> bytes:
    packed = b"!<arch>\n"
    for name, data in members.items():
        packed += f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode() + data
        packed += b"\n" * (len(data) % 2)
    return packed


def _info(name: str, kind: bytes, mode: int, target: str, size: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.linkname, info.size = kind, mode, target, size
    return info


@pytest.fixture
def make_deb(tmp_path: Path) -> Callable[..., Path]:
    """`make_deb("git", {"./usr/bin/git": b"…"}, links={…}, hard={…}, modes={…})` -> the file."""

    def make(
        name: str,
        files: Mapping[str, bytes],
        *,
        links: Mapping[str, str] | None = None,
        hard: Mapping[str, str] | None = None,
        modes: Mapping[str, int] | None = None,
        folders: tuple[str, ...] = (),
    ) -> Path:
        members = [_info(path, tarfile.DIRTYPE, 0o2775, "", 0) for path in folders]
        members += [
            _info(p, tarfile.REGTYPE, (modes or {}).get(p, 0o644), "", len(d))
            for p, d in files.items()
        ]
        members += [
            _info(path, tarfile.SYMTYPE, 0o777, target, 0) for path, target in (links or {}).items()
        ]
        members += [
            _info(path, tarfile.LNKTYPE, 0o755, target, 0) for path, target in (hard or {}).items()
        ]
        stanza = f"Package: {name}\nVersion: 1\n".encode()
        control = _tar(
            [_info("./control", tarfile.REGTYPE, 0o644, "", len(stanza))], {"./control": stanza}
        )
        package = {
            "debian-binary": b"2.0\n",
            "control.tar.xz": control,
            "data.tar.xz": _tar(members, files),
        }
        file = tmp_path / f"{name}_1_all.deb"
        file.write_bytes(_ar(package))
        return file

    return make


@pytest.fixture
def make_wheel(tmp_path: Path) -> Callable[..., Path]:
    """`make_wheel("thing", {"thing/__init__.py": "…"}, scripts="…")` -> a wheel as a store has it, hash before its name."""

    def make(name: str, files: Mapping[str, str], *, scripts: str = "", metadata: str = "") -> Path:
        info = f"{name}-1.0.dist-info"
        inside = {
            **files,
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{metadata}",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            **({f"{info}/entry_points.txt": f"[console_scripts]\n{scripts}\n"} if scripts else {}),
        }
        inside[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*inside, f"{info}/RECORD"])
        file = tmp_path / f"{'0' * 32}-{name}-1.0-py3-none-any.whl"
        with ZipFile(file, "w") as archive:
            for path, text in inside.items():
                archive.writestr(path, text)
        return file

    return make


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """An empty tree."""
    return Tree(tmp_path / "tree")

"""A Debian archive and a Python package index, real in form and tiny, served on loopback. Every
file has a nonce, so that no earlier run has left it in the Nix store."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import threading
import uuid
import zipfile
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ARCHS = ("amd64", "arm64")
SUITE = "trixie"


@dataclass
class Deb:
    """A package of the archive. `files` are paths and contents."""

    name: str
    version: str = "1.0-1"
    depends: str = ""
    files: dict[str, bytes] = field(default_factory=dict)


@dataclass
class Wheel:
    """A pure Python project of the index."""

    name: str
    version: str = "1.0"
    requires: tuple[str, ...] = ()


class Mirror:
    """Publishes files below `folder`; `requests` are the requested paths. Use as a context manager."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.nonce = uuid.uuid4().hex
        self.requests: list[str] = []
        self.cut: dict[
            str, int
        ] = {}  # file name -> bytes after which the connection is dropped, once
        self._held: tuple[str, int] | None = None
        self._free = threading.Event()
        self._server: ThreadingHTTPServer | None = None

    def hold(self, file: str, after: int) -> None:
        """Lets the file's download wait after so many bytes, until `release`."""
        self._held = (file, after)

    def release(self) -> None:
        self._held = None
        self._free.set()

    def wait_if_held(self, file: str) -> int | None:
        """After how many bytes of this file to wait; None = not at all."""
        return self._held[1] if self._held and self._held[0] == file else None

    def wait(self) -> None:
        self._free.wait(60)

    def __enter__(self) -> Mirror:
        handler = partial(_Handler, mirror=self, directory=str(self.folder))
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """From now on there is no server."""
        self.release()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.server_port}"

    def publish_debs(self, debs: list[Deb]) -> None:
        """Replaces the archive: what is not among `debs` is served no more."""
        pool = self.folder / "debian/pool/main"
        pool.mkdir(parents=True, exist_ok=True)
        for old in pool.iterdir():
            old.unlink()
        for arch in ARCHS:
            records = [self._put_deb(pool, deb, arch) for deb in debs]
            for suite in (SUITE, f"{SUITE}-updates"):
                self._put_lists("debian", suite, arch, records if suite == SUITE else [])
            self._put_lists("debian-security", f"{SUITE}-security", arch, [])
        for archive, suite in (
            ("debian", SUITE),
            ("debian", f"{SUITE}-updates"),
            ("debian-security", f"{SUITE}-security"),
        ):
            self._put_release(archive, suite)

    def publish_wheels(self, wheels: list[Wheel]) -> None:
        """Replaces the index."""
        index, files = self.folder / "simple", self.folder / "files"
        files.mkdir(parents=True, exist_ok=True)
        links: dict[str, list[str]] = {}
        for wheel in wheels:
            path = files / f"{wheel.name.replace('-', '_')}-{wheel.version}-py3-none-any.whl"
            path.write_bytes(self._wheel(wheel))
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            links.setdefault(wheel.name, []).append(
                f'<a href="../../files/{path.name}#sha256={digest}">{path.name}</a>'
            )
        for page in index.glob("*/index.html"):
            page.unlink()
        for name, rows in links.items():
            (index / name).mkdir(parents=True, exist_ok=True)
            (index / name / "index.html").write_text("<!DOCTYPE html>" + "\n".join(rows))

    def file(self, pattern: str) -> Path:
        """The one published file that matches the pattern."""
        (found,) = [path for path in self.folder.rglob(pattern) if path.is_file()]
        return found

    def _put_deb(self, pool: Path, deb: Deb, arch: str) -> str:
        data = make_deb(
            {
                **deb.files,
                f"usr/share/{deb.name}/nonce": f"{self.nonce} {deb.version} {arch}".encode(),
            }
        )
        path = pool / f"{deb.name}_{deb.version.partition(':')[2] or deb.version}_{arch}.deb"
        path.write_bytes(data)
        lines = {
            "Package": deb.name,
            "Version": deb.version,
            "Architecture": arch,
            "Depends": deb.depends,
            "Filename": f"pool/main/{path.name}",
            "Size": str(len(data)),
            "SHA256": hashlib.sha256(data).hexdigest(),
        }
        return "".join(f"{key}: {value}\n" for key, value in lines.items() if value)

    def _put_lists(self, archive: str, suite: str, arch: str, records: list[str]) -> None:
        folder = self.folder / archive / "dists" / suite / "main" / f"binary-{arch}"
        folder.mkdir(parents=True, exist_ok=True)
        data = "\n".join(records).encode()
        (folder / "Packages").write_bytes(data)
        (folder / "Packages.gz").write_bytes(gzip.compress(data, mtime=0))

    def _put_release(self, archive: str, suite: str) -> None:
        folder = self.folder / archive / "dists" / suite
        head = f"Origin: Test\nSuite: {suite}\nCodename: {suite}\nArchitectures: {' '.join(ARCHS)}\nComponents: main\n"
        rows = []
        for path in sorted(folder.rglob("Packages*")):
            data = path.read_bytes()
            rows.append(
                f" {hashlib.sha256(data).hexdigest()} {len(data)} {path.relative_to(folder)}\n"
            )
        (folder / "Release").write_text(
            head + "Date: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n" + "".join(rows)
        )

    def _wheel(self, wheel: Wheel) -> bytes:
        project, info = (
            wheel.name.replace("-", "_"),
            f"{wheel.name.replace('-', '_')}-{wheel.version}.dist-info",
        )
        requires = "".join(f"Requires-Dist: {text}\n" for text in wheel.requires)
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr(f"{project}.py", f"NONCE = {self.nonce!r}\n")
            archive.writestr(
                f"{info}/METADATA",
                f"Metadata-Version: 2.1\nName: {wheel.name}\nVersion: {wheel.version}\n{requires}",
            )
            archive.writestr(
                f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
            archive.writestr(f"{info}/RECORD", "")
        return buffer.getvalue()


def make_deb(files: dict[str, bytes]) -> bytes:
    """A .deb with these files, mode 0755."""
    members = {"debian-binary": b"2.0\n", "control.tar.xz": _tar({}), "data.tar.xz": _tar(files)}
    data = b"!<arch>\n"
    for name, content in members.items():
        data += (
            f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode() + content
        )
        data += b"\n" * (len(content) % 2)
    return data


def _tar(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz") as archive:
        for name, content in files.items():
            item = tarfile.TarInfo(f"./{name}")
            item.size, item.mode = len(content), 0o755
            archive.addfile(item, io.BytesIO(content))
    return buffer.getvalue()


class _Handler(SimpleHTTPRequestHandler):
    """Serves files with byte ranges; drops a connection once where the mirror says so."""

    protocol_version = "HTTP/1.1"

    def __init__(self, *arguments: Any, mirror: Mirror, **options: Any) -> None:
        self._mirror = mirror
        super().__init__(*arguments, **options)

    def log_message(self, format: str, *args: Any) -> None:
        return

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        self._mirror.requests.append(f"{self.path} {self.headers.get('Range', '')}".strip())
        path = path / "index.html" if path.is_dir() else path
        if not path.is_file():
            self.send_error(404)
            return
        data = path.read_bytes()
        start = (
            int(self.headers["Range"].removeprefix("bytes=").partition("-")[0])
            if "Range" in self.headers
            else 0
        )
        self.send_response(206 if start else 200)
        self.send_header(
            "Content-Type", "text/html" if path.suffix == ".html" else "application/octet-stream"
        )
        self.send_header("Content-Length", str(len(data) - start))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.end_headers()
        until = self._mirror.cut.pop(path.name, None)
        if (held := self._mirror.wait_if_held(path.name)) is not None:
            self.wfile.write(data[start:held])
            self._mirror.wait()
            self.close_connection = True
            return
        self.wfile.write(data[start:until])
        if until is not None:
            self.close_connection = True

"""The Python environment is made behind a proxy that reads TLS, or the reason is one sentence."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.authority import Authority
from support.intercepting_proxy import InterceptingProxy
from support.package_index import make_index, serve_files

import agentbox.host.bootstrap as bootstrap

SCRIPT = Path(bootstrap.__file__)
HOST, ACCOUNT = "index.example", "jane:a secret"
BARE = {"PATH": "/usr/bin:/bin", "PIP_CONFIG_FILE": "/dev/null", "PIP_RETRIES": "0"}


class Place:
    """A checkout, an index that only the proxy knows, and the authority of that proxy."""

    def __init__(self, directory: Path, port: int) -> None:
        self.checkout, self.port = directory / "checkout", port
        self.authority = Authority(directory)
        self.home = directory / "home"

    def proxy(self, account: str = "", days: int = 2) -> InterceptingProxy:
        return InterceptingProxy(self.authority, {HOST: self.port}, account, days)

    def make(self, port: int, bundle: Path | None = None, access: str = "") -> list[str]:
        """What was printed, one item a line; the package has to be fetched."""
        (self.checkout / ".venv/.required").unlink(missing_ok=True)
        for path in (self.checkout / ".venv/lib").glob("*/site-packages/behind_proxy*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        variables = {
            "HOME": str(self.home),
            "PIP_INDEX_URL": f"https://{HOST}/simple",
            "HTTPS_PROXY": f"http://{access}127.0.0.1:{port}",
        }
        if bundle is not None:
            variables["AGENTBOX_CA_BUNDLE"] = str(bundle)
        done = subprocess.run(
            [sys.executable, str(SCRIPT), str(self.checkout), "dumb"],
            capture_output=True,
            text=True,
            check=False,
            env=BARE | variables,
        )
        lines = done.stderr.splitlines()
        assert done.returncode == (0 if lines[0].startswith("Python environment: ") else 3)
        return lines


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """One for all tests here."""
    directory = tmp_path_factory.mktemp("place")
    checkout = directory / "checkout"
    shutil.copytree(
        SCRIPT.parents[2] / "agentbox", checkout / "agentbox",
        ignore=lambda folder, names: [
            name for name in names
            if Path(folder).name == "agentbox" and name not in ("core", "host", "__init__.py")
        ],
    )  # fmt: skip
    requirement = make_index(directory / "index")
    (checkout / "requirements.host").write_text(requirement)
    with serve_files(directory / "index") as port:
        yield Place(directory, port)


def test_the_environment_is_made_behind_a_proxy(place: Place) -> None:
    """With the authority's file, and as the user of the proxy; every byte went through it."""
    with place.proxy(ACCOUNT).listen() as proxy:
        lines = place.make(proxy.port, place.authority.root, "jane:a%20secret@")
        assert lines[0].startswith("Python environment: 1 packages"), lines
        assert {item.line.rpartition(" ")[0] for item in proxy.seen} == {f"CONNECT {HOST}:443"}
    assert list((place.checkout / ".venv/lib").glob("*/site-packages/behind_proxy.py"))


def test_an_issuer_that_is_not_trusted_is_named_with_the_key_that_fixes_it(place: Place) -> None:
    """Not `No matching distribution found`."""
    with place.proxy().listen() as proxy:
        lines = place.make(proxy.port)
    assert lines[0] == (
        "agentbox: cannot make the Python environment: the certificate that index.example showed "
        'is not trusted here (issuer "Corp CA"): a proxy that reads TLS?'
    )
    assert lines[1].endswith(
        " Set AGENTBOX_CA_BUNDLE or [network] ca_bundle. Then run the command again."
    )


def test_a_certificate_that_expired_is_named(place: Place) -> None:
    """The authority is trusted, so nothing is said of it."""
    with place.proxy(days=-1).listen() as proxy:
        lines = place.make(proxy.port, place.authority.root)
    assert lines[0] == (
        "agentbox: cannot make the Python environment: the certificate that index.example showed "
        'has expired (issuer "Corp CA")'
    )


@pytest.mark.parametrize(
    ("access", "why"),
    [("", "asks for a user (407)"), ("jane:wrong@", "refuses this user and password (407)")],
)
def test_a_proxy_that_wants_a_user_is_named(place: Place, access: str, why: str) -> None:
    """The certificate cannot be seen before that; no password is printed."""
    with place.proxy(ACCOUNT).listen() as proxy:
        lines = place.make(proxy.port, access=access)
        at = f"127.0.0.1:{proxy.port}"
    assert lines[0] == f"agentbox: cannot make the Python environment: the proxy {at} {why}"
    assert "wrong" not in "".join(lines)


def test_a_proxy_that_is_gone_is_named(place: Place) -> None:
    """Nothing listens there any more."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert place.make(port, access="jane:hidden@")[0] == (
        f"agentbox: cannot make the Python environment: the proxy 127.0.0.1:{port} cannot be "
        "reached: Connection refused"
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("-----BEGIN PRIVATE KEY-----\nAAAA\n", "it has no CERTIFICATE"),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "a CERTIFICATE in it cannot be read",
        ),
        (None, "No such file or directory"),
    ],
)
def test_a_file_without_a_certificate_is_refused(
    place: Place, tmp_path: Path, text: str | None, why: str
) -> None:
    """Before anything is asked of the network."""
    file = tmp_path / "corp.pem"
    if text is not None:
        file.write_text(text)
    assert place.make(1, file)[0] == (
        f"agentbox: cannot make the Python environment: cannot use AGENTBOX_CA_BUNDLE {file}: {why}"
    )

"""`sslmode=verify-full` against a real server: the certificate must be issued by the given roots,
for the requested name."""

import os
import subprocess

import psycopg
import pytest
from agentbox_testkit.local_store import LocalStore
from postgres_server import DATABASE, PostgresServer
from postgres_store import PostgresStore

from agentbox.core.slot_errors import SlotUnavailable, ValidationError

NAME = "db.box.test"


def made_ca(folder, name):
    """A root certificate, with its key beside it."""
    subject = [
        "-subj",
        f"/CN={name}",
        "-days",
        "2",
        "-noenc",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
    ]
    openssl(
        "req", "-x509", *subject, "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem"
    )
    return folder / f"{name}.pem"


def made_certificate(folder, ca, name):
    """A server's certificate and key, signed by `ca`."""
    request, key, certificate = folder / "server.csr", folder / "server.key", folder / "server.crt"
    names = ["-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"]
    openssl(
        "req",
        "-new",
        *names,
        "-noenc",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-keyout",
        key,
        "-out",
        request,
    )
    openssl(
        "x509",
        "-req",
        "-in",
        request,
        "-CA",
        ca,
        "-CAkey",
        ca.with_suffix(".key"),
        "-days",
        "2",
        "-copy_extensions",
        "copy",
        "-out",
        certificate,
    )
    return certificate, key


def openssl(*words):
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


@pytest.fixture(scope="module")
def roots(tmp_path_factory):
    folder = tmp_path_factory.mktemp("roots")
    return made_ca(folder, "ours"), made_ca(folder, "theirs")


@pytest.fixture(scope="module")
def server(roots):
    """It is called db.box.test, and listens on loopback."""
    made = PostgresServer(ssl="on")
    try:
        for file in made_certificate(roots[0].parent, roots[0], NAME):
            inside = made.folder / "data" / file.name
            inside.write_bytes(file.read_bytes())
            inside.chmod(0o600)
            os.chown(inside, made.folder.stat().st_uid, -1)
        made.start()
        made.database(DATABASE)
        yield made
    finally:
        made.remove()


def store_of(server, folder, ca=None, host=NAME, mode="verify-full", **parameters):
    """A store that connects to the server by a name with the given address; `ca` is stored where a
    box has its files."""
    extra = {"sslmode": mode, "hostaddr": "127.0.0.1", **parameters}
    made = PostgresStore(
        "beads", server, folder, {"ca_file": f"/run/secrets/{ca.name}"} if ca else {}
    )
    if ca and ca.exists():
        inside = made.cfg.paths.resolve(f"/run/secrets/{ca.name}")
        inside.parent.mkdir(parents=True, exist_ok=True)
        inside.write_bytes(ca.read_bytes())
    return made.with_secrets(dsn=server.dsn(**extra).replace("@127.0.0.1:", f"@{host}:"))


async def refusal(store):
    with pytest.raises(SlotUnavailable) as refused:
        await LocalStore.open(store)
    await store.close_all()
    return refused.value.message


async def test_a_verified_server_is_used_through_tls(server, roots, tmp_path):
    """The slot works, and the server reports that the connection of this box is encrypted."""
    store = store_of(server, tmp_path, roots[0])
    try:
        adapter = await LocalStore.open(store)
        assert (await adapter.list()).items == ()
        with psycopg.connect(server.dsn()) as db:
            sql = "SELECT bool_and(s.ssl) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) WHERE application_name LIKE 'agentbox%'"
            assert db.execute(sql).fetchone() == (True,)
    finally:
        await store.remove()


async def test_who_is_not_the_one_that_was_asked_for_is_refused(server, roots, tmp_path):
    """Another root, another name, no roots at all; each with its own message."""
    ours, theirs = roots
    cases = {
        "its certificate is not trusted": store_of(server, tmp_path, theirs),
        "its certificate has another name": store_of(server, tmp_path, ours, host="other.box.test"),
        "the file of trusted certificates cannot be read": store_of(
            server, tmp_path, tmp_path / "none.pem"
        ),
    }
    assert {why: await refusal(store) for why, store in cases.items()} == {
        why: f"cannot reach PostgreSQL: {why}" for why in cases
    }


async def test_a_server_without_tls_is_refused(postgres, roots, tmp_path):
    """Though it accepts connections without TLS."""
    assert (
        await refusal(store_of(postgres, tmp_path, roots[0]))
        == "cannot reach PostgreSQL: it does not support TLS"
    )


@pytest.mark.parametrize("mode", ["disable", "prefer", "require", "verify-ca"])
async def test_elsewhere_less_is_refused_before_a_packet_is_sent(server, tmp_path, mode):
    """An address that is not loopback; no server is there."""
    store = store_of(server, tmp_path, mode=mode, hostaddr="192.0.2.1")
    with pytest.raises(ValidationError, match="without sslmode=verify-full"):
        await LocalStore.open(store)
    await store.close_all()

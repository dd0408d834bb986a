"""Where a connection string may lead, and that no error, log line or problem shows what is in it (C4)."""

import logging

import pytest
from postgres_store import PostgresStore, ServerClock

from agentbox.core.slot_errors import AdapterError, SlotUnavailable, ValidationError
from agentbox.core.storage.postgres.target import connection_parameters

SECRET = "hunter2-very-secret"


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://u:p@localhost/d", "postgresql://u:p@127.0.0.1:5433/d", "host=/run/postgresql dbname=d", "host=::1 user=u",
        "postgresql://u:p@[::1]/d?sslmode=disable", "postgresql:///d?host=/var/run/postgresql", "host=localhost,127.0.0.1 dbname=d",
        "postgresql://u:p@db.example/d?sslmode=verify-full", "host=db.example hostaddr=127.0.0.1 dbname=d",
    ],
)  # fmt: skip
def test_what_is_near_or_verified_is_accepted(dsn):
    """Loopback, a socket, or a certificate that is checked against the name."""
    assert (
        connection_parameters(dsn, ca_file="", name="agentbox:x", timeout_s=10)["application_name"]
        == "agentbox:x"
    )


@pytest.mark.parametrize(
    "dsn",
    [
        f"postgresql://u:{SECRET}@db.example/d", f"postgresql://u:{SECRET}@db.example/d?sslmode=require",
        f"postgresql://u:{SECRET}@db.example/d?sslmode=verify-ca", f"host=localhost,db.example password={SECRET}",
        f"host=localhost hostaddr=192.0.2.7 password={SECRET}", f"postgresql://u:{SECRET}@localhost/d?host=db.example",
        f"dbname=d password={SECRET}", f"service=x password={SECRET}", f"postgresql://u:{SECRET}@[::1/d", f"password={SECRET} host", "",
        f"postgresql://u:{SECRET}@127.0.0.1.example/d", f"host=10.0.0.1 password={SECRET}",
    ],
)  # fmt: skip
def test_what_leads_elsewhere_unverified_is_refused(dsn):
    """And the refusal quotes nothing of it."""
    with pytest.raises(ValidationError) as refused:
        connection_parameters(dsn, ca_file="", name="x", timeout_s=10)
    assert SECRET not in f"{refused.value} {refused.value.to_problem()} {refused.value.__cause__}"


def test_a_verified_server_is_checked_against_a_file_of_roots():
    """The one of the string, else the slot's, else the system's."""
    far = "host=db.example sslmode=verify-full"
    assert (
        connection_parameters(far, ca_file="", name="x", timeout_s=1)["sslrootcert"]
        == "/etc/ssl/certs/ca-certificates.crt"
    )
    assert (
        connection_parameters(far, ca_file="/etc/ca.pem", name="x", timeout_s=1)["sslrootcert"]
        == "/etc/ca.pem"
    )
    assert (
        connection_parameters(
            f"{far} sslrootcert=/own.pem", ca_file="/etc/ca.pem", name="x", timeout_s=1
        )["sslrootcert"]
        == "/own.pem"
    )


@pytest.mark.parametrize(
    ("change", "why"), [((":{password}@", f":{SECRET}@"), "refused the password"), (("/test?", "/nothing?"), "does not exist"), ((":{port}/", ":1/"), "nothing listens")]
)  # fmt: skip
async def test_a_server_that_does_not_let_us_in(postgres, tmp_path, caplog, change, why):
    """The message has the reason; neither it nor a log line has the password, the user or the
    address."""
    caplog.set_level(logging.DEBUG)
    store = PostgresStore("beads", postgres, tmp_path, {})
    old, new = (part.format(password=postgres.password, port=postgres.port) for part in change)
    store.with_secrets(dsn=store.cfg.secrets["dsn"].replace(old, new))
    try:
        with pytest.raises(SlotUnavailable, match=why) as refused:
            await store.open()
    finally:
        await store.close_all()
    shown = f"{refused.value} {refused.value.to_problem()} {caplog.text}"
    assert SECRET not in shown
    assert postgres.password not in shown


async def test_a_server_that_is_gone_shows_no_password(postgres, tmp_path, caplog):
    """Errors and log lines of a pool that loses its server."""
    caplog.set_level(logging.DEBUG)
    ServerClock(postgres)
    store = PostgresStore("beads", postgres, tmp_path, {"timeout_seconds": 1})
    try:
        adapter = await store.open()
        await store.kill_backend()
        for call in (adapter.show("x"), adapter.list(), adapter.ready()):
            with pytest.raises(AdapterError) as refused:
                await call
            assert postgres.password not in f"{refused.value} {refused.value.to_problem()}"
    finally:
        await store.remove()
    assert postgres.password not in caplog.text

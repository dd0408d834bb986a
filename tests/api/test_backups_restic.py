"""Backups over HTTP with the engine restic: the program `backup` has the password, the API has not."""

from collections.abc import Iterator

import pytest
from agentbox_testkit.wait import wait_until
from support import tables
from support.api_box import ApiBox
from support.restic_repositories import PASSWORD, restic_repository

from agentbox.client import ApiError, BoxClient
from agentbox.contracts.backups import Backup

SECRET = "BOX_RESTIC_PASSWORD"


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiBox]:
    table = tables.backup(engine="restic", password_env=SECRET, min_free=1 << 20)
    with ApiBox(tmp_path_factory.mktemp("box"), orchestrator=False, backup=table) as made:
        made.paths.mounted_secrets.mkdir(parents=True, exist_ok=True)
        yield made


async def made_by(client: BoxClient) -> Backup:
    begun = client.backups.create()
    await wait_until(
        lambda: client.backups.get(begun.id).state in ("created", "failed"),
        "the backup has ended",
        seconds=60,
    )
    return client.backups.get(begun.id)


async def test_made_verified_and_damaged(box: ApiBox) -> None:
    """Without its secret no backup is made, and the journal says why. Then one is made, verified,
    and read with the password alone; it is not sent as a file; damage is found on demand."""
    with box.client() as client:
        failed = await made_by(client)
        assert failed.state == "failed"
        assert f"the secret {SECRET} is not set" in failed.reason
        events = client.events.read(since=-1, types=("backup.failed",)).events
        assert [event.data["reason"] for event in events] == ["password"]

        (box.paths.mounted_secrets / SECRET).write_text(PASSWORD)
        client.pods.write("notes/one", b"body of a pod", content_type="text/plain")
        made = await made_by(client)
        assert (made.state, made.reason) == ("created", "")
        assert made.head is not None
        assert (made.head.engine, made.head.encrypt) == ("restic", "restic")
        repository = restic_repository(box.paths.backups)
        with repository.open(made.id, []) as members:
            bodies = [row.body.read() for row in members if row.body is not None]
        assert b"body of a pod" in bodies
        assert client.backups.verify(made.id).faults == ()
        with pytest.raises(ApiError, match="restic has no file for each snapshot"):
            client.backups.archive(made.id)

        (box.paths.backups / "restic/snapshots" / made.head.archive).unlink()
        (fault,) = client.backups.verify(made.id).faults
        assert fault.startswith(f"{made.id}.json: names {made.head.archive[:8]} of restic")
        (box.paths.mounted_secrets / SECRET).write_text("another")
        with pytest.raises(ApiError, match="its password is another one"):
            client.backups.verify(made.id)
    for file in (path for path in box.paths.state.rglob("*") if path.is_file()):
        assert PASSWORD.encode() not in file.read_bytes(), file

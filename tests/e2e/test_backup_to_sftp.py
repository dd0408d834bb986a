"""A box whose repository of restic is on another host: made by its own schedule of verbs, refused by
name, and brought back where nothing is left but the manifest and its secrets.
"""

from __future__ import annotations

import pwd
import shutil
from pathlib import Path

from cli_box import CliBox
from support.sftp_server import SftpServer, sftp_server

from agentbox.core.paths import CHECKOUT, Paths
from agentbox.host.engines.process.privilege_drop import BOX_UID
from agentbox.host.engines.state import BoxState

UP = ("--engine", "process")
PASSWORD = "a-password-of-the-repository"


def manifest(server: SftpServer) -> str:
    return f"""
[backup]
engine = "restic"
repository = "{server.address}"
password_env = "BOX_RESTIC_PASSWORD"
ssh_key_env = "BOX_RESTIC_KEY"
ssh_host_key = "{server.host_key}"
min_free = "1MiB"
keep = 1
keep_daily = 0
keep_weekly = 0
keep_monthly = 0
"""


def lock_feature(box: CliBox) -> None:
    """A lock beside the manifest that has the feature, without rows: the process engine takes
    restic of this host."""
    shipped = (CHECKOUT / "agentbox.lock").read_text()
    features = 'features = ["build", "core"]'
    assert features in shipped
    locked = shipped.replace(features, 'features = ["backup_restic", "build", "core"]')
    (box.folder / "agentbox.lock").write_text(locked)


def with_a_user(folder: Path) -> tuple[str, ...]:
    """Words before a command: a mount namespace where the box's user has a name, which ssh needs.
    Empty if it has one here."""
    try:
        pwd.getpwuid(BOX_UID)
    except KeyError:
        users = folder / "passwd"
        named = f"box:x:{BOX_UID}:{BOX_UID}::/nonexistent:/usr/sbin/nologin\n"
        users.write_text(Path("/etc/passwd").read_text() + named)
        script = 'mount --bind "$0" /etc/passwd && exec "$@"'
        return ("unshare", "--mount", "sh", "-c", script, str(users))
    return ()


def test_a_box_is_brought_back_from_another_host(cli_box: CliBox, tmp_path: Path) -> None:
    """A host that is gone is named, and the next backup is made. Of two, retention leaves one. With
    the state of the box removed, its bead comes back. No credential is in what the box keeps."""
    cli_box.wrapper = with_a_user(tmp_path)
    server = sftp_server(tmp_path)
    cli_box.write(manifest(server))
    lock_feature(cli_box)
    cli_box.environment |= {"BOX_RESTIC_PASSWORD": PASSWORD, "BOX_RESTIC_KEY": server.key}
    cli_box.up(*UP)
    paths = Paths(Path(BoxState(cli_box.state).running_record().root))
    refused = cli_box("backup", "create")
    assert refused.code == 3
    assert "its host cannot be reached" in refused.error()[0]
    with server.running():
        assert cli_box("backup", "create").code == 0
        bead = cli_box("bead", "create", "before the fire").out.strip()
        ran = cli_box("backup", "create", "--tag", "last")
        assert ran.code == 0, ran.err
        listed = cli_box("--json", "backup", "list").json
        assert [
            (row["tag"], row["verified_at"] is None) for row in listed if row["state"] == "created"
        ] == [("last", False)]
        assert cli_box("backup", "verify").code == 0
        assert cli_box("backup", "verify", "latest", "--deep").code == 0
        for file in (path for path in paths.state.rglob("*") if path.is_file()):
            assert PASSWORD.encode() not in file.read_bytes(), file
        shutil.rmtree(paths.backups)  # with the disk of the box
        cli_box.down()
        ran = cli_box("restore", "latest", "--yes", *UP, timeout=300)
        assert ran.code == 0, ran.err
        assert "before the fire" in cli_box("bead", "show", bead).out

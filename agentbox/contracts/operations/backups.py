"""Operations of backups."""

from agentbox.contracts.backups import BackupEndpoints
from agentbox.contracts.routes.operation import read, write
from agentbox.contracts.routes.resource import Resource

BACKUPS = Resource(
    "backups",
    BackupEndpoints,
    operations=(
        write(
            "create",
            "POST /v1/backups",
            "Makes a backup. It goes on after the response: follow its `state`, or the events "
            "`backup.created` and `backup.failed`. 409 while another one is made, 507 without "
            "enough room.",
            route="create_backup",
            statuses=(202,),
            body="NewBackup",
        ),
        read("list_backups", "GET /v1/backups", "Backups, newest first."),
        read("get", "GET /v1/backups/{id}", "One backup, with its head.", route="get_backup"),
        write(
            "verify",
            "POST /v1/backups/{id}/verify",
            "Compares the archive with the hashes of its head.",
            route="verify_backup",
            deadline_s=3600,
        ),
        read(
            "archive",
            "GET /v1/backups/{id}/archive",
            "A tar of the head and the archive, encrypted as it is stored.",
            route="backup_archive",
            response="Body",
            media="any",
        ),
    ),
)
RESOURCES = (BACKUPS,)

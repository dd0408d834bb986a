"""`agentbox backup`: snapshots of the box, encrypted so that the box itself cannot read them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.commands.data.backup_keeping import VERBS
from agentbox.host.cli.commands.data.backup_sources import (
    create_backup,
    find_repository,
    identity_option,
    repository_option,
    resolve_latest,
    snapshot_here,
    stored_ids,
)
from agentbox.host.cli.commands.data.backup_text import (
    format_backup,
    format_head,
    report_faults,
    report_rehearsal,
    snapshot_row,
)
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.output import pluralize

if TYPE_CHECKING:
    from agentbox.backup.repository import Repository

POLL_SECONDS = 0.25


@click.group(name="backup")
def command() -> None:
    """Make, list, verify and prune snapshots of the box.

    A snapshot has the state of all slots at one moment. It is encrypted to backup.recipients; the
    box has no key to read it.
    """


for verb in VERBS:
    command.add_command(verb)


@command.command()
@click.option(
    "--recipient",
    "recipients",
    multiple=True,
    metavar="KEY",
    help="Who can read snapshots: age1... or ssh-ed25519 ...; may be repeated.",
)
@click.pass_obj
def init(cli: CliContext, recipients: tuple[str, ...]) -> None:
    """Set up backups: write backup.recipients into the manifest.

    Without --recipient an identity is made and printed once, on stdout: keep it where the box is
    not. Nothing of it is stored.
    """
    from agentbox.backup.archive.keys import new_identity, parse_recipients
    from agentbox.host.backups.recipients import manifest_with_recipients, write_recipients

    if cli.load_manifest().usable.backup.engine == "restic":
        raise AgentboxError(
            "cannot set up recipients: a repository of restic has a password instead",
            "Set backup.password_env, and the secret that it names: agentbox secrets set NAME",
            exit_code=ExitCode.USAGE,
        )
    identity = ""
    if not recipients:
        identity, recipient = new_identity()
        recipients = (recipient,)
    parse_recipients(recipients)
    text = manifest_with_recipients(cli.manifest.read_text(), recipients)
    document = {"recipients": list(recipients), "manifest": str(cli.manifest)}
    cli.out.document({**document, "identity": identity} if identity else document)
    if identity:
        cli.out.line(
            "# Recovery sheet: who has this line can read every snapshot. It is not stored."
        )
        cli.out.line(f"# recipient: {recipients[0]}")
        cli.out.line(identity)
    write_recipients(cli.manifest, text)
    cli.out.note(f"wrote backup.recipients into {cli.manifest}; ./agentbox.sh up applies it")


@command.command()
@click.option("--tag", default="", metavar="T", help="A word that the list shows.")
@click.pass_obj
def create(cli: CliContext, tag: str) -> int:
    """Make a snapshot now and wait until it is stored.

    Exit 1 if a slot was down: that snapshot has no data of it.
    """
    import time

    from agentbox.backup.archive.keys import parse_recipients

    plan = cli.load_manifest().usable.backup
    if plan.engine == "archive" and plan.encrypt == "age":
        parse_recipients(plan.recipients)
    deadline = None if cli.timeout is None else time.monotonic() + cli.timeout
    with cli.client() as client:
        backup = create_backup(client, tag)
        while backup.state not in ("created", "failed"):
            cli.out.redraw(f"{backup.id}  {backup.state} ...")
            if deadline is not None and time.monotonic() > deadline:
                raise AgentboxError(
                    f"cannot wait for {backup.id} any longer: it is {backup.state}",
                    "It goes on; `agentbox backup list` shows it.",
                )
            time.sleep(POLL_SECONDS)
            backup = client.backups.get(backup.id)
    cli.out.redraw("")
    cli.out.document(backup.to_wire())
    if backup.state == "failed":
        raise AgentboxError(
            f"cannot make a backup: {backup.reason}",
            "Earlier snapshots are unchanged; `agentbox backup list` shows them.",
            exit_code=ExitCode.PREREQUISITE,
        )
    cli.out.line(format_backup(backup))
    return ExitCode.BAD if backup.partial else ExitCode.DONE


@command.command(name="list")
@repository_option
@click.pass_obj
def list_(cli: CliContext, repository: Path | None) -> None:
    """List all snapshots, newest first."""
    if (found := find_repository(cli, repository)) is not None:
        heads = list(reversed(found.list()))
        cli.out.document([snapshot_row(head) for head in heads])
        for head in heads:
            cli.out.line(format_head(head))
        return
    with cli.client() as client:
        backups = client.backups.list().items
    cli.out.document([backup.to_wire() for backup in backups])
    for backup in backups:
        cli.out.line(format_backup(backup))


@command.command()
@click.argument("id")
@repository_option
@click.pass_obj
def show(cli: CliContext, id: str, repository: Path | None) -> None:
    """Show the head of a snapshot: what it holds and when it was cut. ID may be `latest`."""
    if (found := find_repository(cli, repository)) is not None:
        head = found.get(id)
    else:
        with cli.client() as client:
            backup = client.backups.get(resolve_latest(client, id))
        if backup.head is None:
            raise AgentboxError(
                f"cannot show {id}: it is {backup.state} {backup.reason}".rstrip(),
                "Only a stored snapshot has a head.",
            )
        head = backup.head
    cli.out.document(head.to_wire())
    cli.out.line(format_head(head))
    readers = {"none": "not encrypted", "restic": "a password of restic"}.get(head.encrypt)
    cli.out.line(
        f"box {head.box}, release {head.release}, record {head.seq}; "
        f"{readers or pluralize(head.recipients, 'recipient')}; "
        f"{pluralize(len(head.members), 'file')}"
    )
    for name, count in sorted(head.counts.items()):
        cli.out.line(f"  {name:<20} {count}")
    for name in head.partial:
        cli.out.line(f"missing: {name} was down")
    for path in head.changed:
        cli.out.line(f"changed while it was read: {path}")


@command.command()
@click.argument("id", required=False)
@click.option(
    "--deep", is_flag=True, help="Decrypt here, and check files, journal, stores and objects."
)
@click.option(
    "--rehearse",
    is_flag=True,
    help="Restore into a throw-away box without ports or network, and wait until it is ready.",
)
@identity_option
@repository_option
@click.pass_obj
def verify(
    cli: CliContext,
    id: str | None,
    deep: bool,
    rehearse: bool,
    identity: str | None,
    repository: Path | None,
) -> int:
    """Compare the files of a snapshot, or of the whole repository, with the hashes in the heads.

    Exit 1 with the name of each damaged file. --deep and --rehearse need --identity for an
    encrypted snapshot. --deep decrypts into a temporary folder of this machine. --rehearse makes a
    second box of the snapshot, beside the one that runs, compares what it shows with what is in the
    snapshot, and removes it. ID may be `latest`.
    """
    if deep and rehearse:
        raise click.UsageError("--deep and --rehearse exclude each other")
    if identity is not None and not (deep or rehearse):
        raise click.UsageError(
            "--identity requires --deep or --rehearse: comparing hashes needs no identity"
        )
    found = find_repository(cli, repository)
    if rehearse:
        return _verify_by_rehearsal(cli, found, id or "latest", identity)
    if deep:
        return _verify_deep(cli, found, id or "latest", identity)
    if found is not None:
        faults = found.verify(id) if id else found.verify_all()
        return report_faults(cli.out, id or "the repository", faults)
    with cli.client() as client:
        ids = [resolve_latest(client, id)] if id else stored_ids(client)
        backups = [client.backups.verify(each) for each in ids]
    cli.out.document([backup.to_wire() for backup in backups])
    for backup in backups:
        for fault in backup.faults:
            cli.out.line(f"damaged: {fault}")
        if not backup.faults:
            cli.out.line(f"sound: {backup.id}")
    return ExitCode.BAD if any(backup.faults for backup in backups) else ExitCode.DONE


def _verify_deep(cli: CliContext, found: Repository | None, id: str, identity: str | None) -> int:
    import tempfile

    from agentbox.backup.deep import verify_deep
    from agentbox.host.backups.identity import read_identities

    identities = read_identities(identity)
    with ExitStack() as stack:
        repository, id = snapshot_here(cli, stack, found, id)
        head = repository.get(id)
        faults: Sequence[Any] = repository.verify(head.id)
        if not faults:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="agentbox-verify-"))
            faults = verify_deep(repository, head, identities, Path(folder))
    return report_faults(cli.out, head.id, faults)


def _verify_by_rehearsal(
    cli: CliContext, found: Repository | None, id: str, identity: str | None
) -> int:
    from agentbox.host.backups.identity import read_identities
    from agentbox.host.cli.stages.restore_rehearsal import rehearse_restore
    from agentbox.host.restore.source import Source

    identities = read_identities(identity)
    with ExitStack() as stack:
        repository, id = snapshot_here(cli, stack, found, id)
        head = repository.get(id)
        if faults := repository.verify(head.id):
            return report_faults(cli.out, head.id, faults)
        source = Source(head.id, repository, None, head)
        report_rehearsal(cli.out, head.id, rehearse_restore(cli, source, identities))
    return ExitCode.DONE

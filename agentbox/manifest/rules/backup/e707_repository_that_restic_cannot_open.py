"""E707: restic could not open the repository with what the manifest says."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.named_types import parse_address
from agentbox.manifest.rules.context import RuleContext

CODE, SINCE = "E707", "0.1"
TITLE = "repository that restic cannot open"
REASON = """\
A repository of restic has a password, and one on another host its credentials. A host of sftp: is
known by its key, or anybody between could take the snapshots."""
READS = (
    "backup.engine",
    "backup.repository",
    "backup.password_env",
    "backup.ssh_key_env",
    "backup.ssh_host_key",
    "backup.credentials",
)
BAD = """
[backup]
engine = "restic"
"""
GOOD = """
[backup]
engine = "restic"
password_env = "AGENTBOX_RESTIC_PASSWORD"
"""
ENVIRONMENT = True


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per key."""
    if context["backup.engine"] != "restic":
        return
    if not context["backup.password_env"]:
        yield context.finding(
            "backup.password_env",
            message="restic encrypts with a password, and nothing names it",
            remedy='Set it to the name of a variable, such as "AGENTBOX_RESTIC_PASSWORD".',
        )
    repository = context["backup.repository"]
    address = parse_address(repository) if repository else None
    if repository and address is None:
        yield context.finding(
            "backup.repository",
            message=f"{repository} is not an address that restic and this release know",
            remedy="Write sftp:USER@HOST:/PATH, s3:https://HOST/BUCKET or rest:https://HOST/, "
            "without a password.",
        )
    elif address is not None and address.scheme == "sftp":
        yield from _check_ssh(context)
    else:
        yield from _check_unused(context, "ssh_key_env", "ssh_host_key")
    if address is None or address.scheme == "sftp":
        yield from _check_unused(context, "credentials")
    for name in ("password_env", "ssh_key_env"):
        yield from _check_set(context, f"backup.{name}", context[f"backup.{name}"])
    for variable in context["backup.credentials"]:
        yield from _check_set(context, "backup.credentials", variable)


def _check_ssh(context: RuleContext) -> Iterator[Finding]:
    for name, need in (
        ("ssh_key_env", "the name of a variable with a private key"),
        ("ssh_host_key", "the public key of its host"),
    ):
        if not context[f"backup.{name}"]:
            yield context.finding(
                f"backup.{name}",
                message=f"a repository sftp: needs {need}",
                remedy=f"Set backup.{name}.",
                related=("backup.repository",),
            )


def _check_unused(context: RuleContext, *names: str) -> Iterator[Finding]:
    for name in names:
        if context[f"backup.{name}"]:
            yield context.finding(
                f"backup.{name}",
                message=f"backup.{name} is not for this repository: nothing reads it",
                remedy="Remove it, or set backup.repository to one that it is for.",
                related=("backup.repository",),
            )


def _check_set(context: RuleContext, key: str, variable: str) -> Iterator[Finding]:
    if variable and context.is_unset(variable):
        yield context.finding(
            key,
            message=f"the variable {variable} is not set; restic needs it",
            remedy=f"Set {variable} in .env beside the manifest or in the environment, or run "
            f"`agentbox secrets set {variable}`.",
        )

"""What the plan of a box with restic has: secrets, the program's rights, the destination."""

from support.plans import plan_of

from agentbox.plan.backup import RULESET
from agentbox.plan.names import BACKUP

_TABLE = """
[backup]
engine = "restic"
password_env = "WORD"
"""
_SSH = f"""{_TABLE}
repository = "sftp://box@203.0.113.7:2222//srv/box"
ssh_key_env = "KEY"
ssh_host_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
"""
_S3 = f"""{_TABLE}
repository = "s3:https://s3.example/bucket"
credentials = ["AWS_SECRET_ACCESS_KEY"]
"""


def test_a_box_of_archives_has_no_network_for_backups() -> None:
    """Nor a secret, a destination or the program restic."""
    plan = plan_of()
    assert plan.rulesets[BACKUP] == RULESET
    assert not RULESET.network
    assert "backup_restic" not in plan.features
    assert plan.egress == ()


def test_a_folder_needs_the_password_alone() -> None:
    """The program may read it, and connects nowhere."""
    plan = plan_of(_TABLE)
    ruleset = plan.rulesets[BACKUP]
    assert "backup_restic" in plan.features
    assert "WORD" in plan.secrets
    assert ruleset.reads == ("/run/secrets/WORD", "/run/agentbox/secrets/WORD")
    assert not ruleset.network
    assert plan.egress == ()


def test_a_remote_repository_is_one_destination() -> None:
    """The program connects to its port and to servers of names; secrets are those that it needs."""
    plan = plan_of(_SSH)
    ruleset = plan.rulesets[BACKUP]
    assert (ruleset.network, ruleset.connects) == (True, (53, 2222))
    assert {"WORD", "KEY"} <= set(plan.secrets)
    assert "/run/secrets/KEY" in ruleset.reads
    (to,) = plan.egress
    assert (to.owner, to.host, to.port, to.private) == (
        "backup.repository",
        "203.0.113.7/32",
        2222,
        True,
    )
    other = plan_of(_S3)
    assert other.rulesets[BACKUP].connects == (53, 443)
    assert "AWS_SECRET_ACCESS_KEY" in other.secrets


def test_a_request_names_secrets_and_has_none() -> None:
    """What the API writes for the program."""
    request = plan_of(_SSH).backup.request("lab")
    assert request["restic"]["password_env"] == "WORD"
    assert request["restic"]["ssh_key_env"] == "KEY"
    assert plan_of().backup.request("lab")["restic"] is None

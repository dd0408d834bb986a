"""The named types of schedules and of readers of backups. Standard library only: the boot imports
this.
"""

from typing import Annotated

from agentbox.manifest.declarations.constraints import Pattern, TypeInfo


def _cron_field(number: str) -> str:
    """A list of `*`, numbers and ranges, each with a step."""
    part = rf"(\*|{number}(-{number})?)(/[1-9][0-9]?)?"
    return f"{part}(,{part})*"


_CRON = (
    "^$|^"
    + " ".join(
        _cron_field(number)
        for number in (
            "[1-5]?[0-9]",
            "(1?[0-9]|2[0-3])",
            "([1-9]|[12][0-9]|3[01])",
            "([1-9]|1[0-2])",
            "[0-6]",
        )
    )
    + "$"
)
Cron = Annotated[
    str,
    TypeInfo(
        "cron",
        'Five fields of cron, in UTC: minute, hour, day of month, month, day of week; "" for '
        "never.",
        "five fields of cron",
        '"30 3 * * *"',
    ),
    Pattern(_CRON),
]
Recipient = Annotated[
    str,
    TypeInfo(
        "recipient",
        "A public key of age, or one of ssh: age1..., ssh-ed25519 ....",
        "a public key of age or ssh-ed25519",
        f'"age1{"q" * 58}"',
    ),
    Pattern(
        "^age1[02-9ac-hj-np-z]{58}$|^ssh-ed25519 AAAA[A-Za-z0-9+/]{64}"
        r"( [^\u0000-\u001f\u007f]{0,128})?$"
    ),
]

"""An environment for a copy of this checkout, without installing anything."""

import sysconfig
import venv
from pathlib import Path

from agentbox.host.bootstrap import write_stamp


def share_environment(checkout: Path) -> None:
    """The packages are those of this one, the sources the copy's; agentbox.sh takes it as made for the copy."""
    target = checkout / ".venv"
    venv.EnvBuilder(symlinks=True).create(target)
    site = next((target / "lib").glob("python3.*/site-packages"))
    (site / "lent-packages.pth").write_text(
        f"{sysconfig.get_path('purelib')}\n"
    )  # after the checkout's own link
    write_stamp(target, checkout)

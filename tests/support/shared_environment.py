"""An environment for a copy of this checkout, without installing anything."""

import sysconfig
import venv
from pathlib import Path

from agentbox.host.bootstrap import write_stamp


def share_environment(checkout: Path) -> None:
    """The packages are those of this environment, the sources and test code those of the copy;
    agentbox.sh accepts it for the copy.
    """
    target = checkout / ".venv"
    venv.EnvBuilder(symlinks=True).create(target)
    site = next((target / "lib").glob("python3.*/site-packages"))
    (site / "lent-packages.pth").write_text(
        f"{sysconfig.get_path('purelib')}\n"
    )  # after the checkout's own link
    code = [str(checkout / "tests"), str(checkout / "testkit")]
    # In ASCII whatever the name of the checkout: in the C locale, Python reads the file as ASCII.
    (site / "test-code.pth").write_text(f"import sys; sys.path += {code!a}\n")
    write_stamp(target, checkout)

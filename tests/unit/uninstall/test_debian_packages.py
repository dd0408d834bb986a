"""Which packages go is apt's answer."""

import shutil
from pathlib import Path

import pytest
from skipping import machine_lacks

from agentbox.core.errors import AgentboxError
from agentbox.host.uninstall import debian_packages


@pytest.fixture(autouse=True)
def on_debian() -> None:
    if shutil.which("apt-get") is None:
        machine_lacks("apt-get, whose answers are used")


def test_what_others_depend_on_stays() -> None:
    """dpkg depends on tar, and apt on dpkg: none of them is offered."""
    assert debian_packages.unneeded(["tar", "libc6", "no-such-package"]) == []
    assert debian_packages.installed_sizes(["tar", "no-such-package"]).keys() == {"tar"}


def test_a_package_that_would_take_another_along_is_refused() -> None:
    """Nothing is removed then."""
    with pytest.raises(AgentboxError, match="cannot remove tar"):
        debian_packages.purge(["tar"])
    assert debian_packages.installed_sizes(["tar"])


def test_packages_of_the_bootstrap_are_read_from_each_checkout(tmp_path: Path) -> None:
    """What agentbox.sh noted before there was a Python; a checkout that is gone names none."""
    (tmp_path / debian_packages.BOOTSTRAP_FILE).write_text("python3\npython3-venv\n")
    found = debian_packages.bootstrap_packages([str(tmp_path), str(tmp_path / "gone")])
    assert found == {"python3", "python3-venv"}

"""The Debian packages that agentbox installed: which of them nobody else needs; removal."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.paths import temporary_prefix
from agentbox.host.engines.command import run

BOOTSTRAP_FILE: Final = ".venv.packages"
"""In a checkout: the packages that agentbox.sh was about to install, before there was a Python."""
_ENV: Final = {"LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
_LOCK: Final = ("-o", "DPkg::Lock::Timeout=300")


def bootstrap_packages(checkouts: Iterable[str]) -> set[str]:
    """The packages that agentbox.sh of these checkouts was about to install."""
    files = (Path(checkout) / BOOTSTRAP_FILE for checkout in checkouts)
    return {name for file in files if file.is_file() for name in file.read_text().split()}


def installed_sizes(names: Iterable[str]) -> dict[str, int]:
    """The bytes of those packages of which dpkg has something, configuration files included."""
    requested = sorted(set(names))
    if not requested or shutil.which("dpkg-query") is None:
        return {}
    fields = "${Package}\t${Installed-Size}\t${db:Status-Abbrev}\n"
    output = run(["dpkg-query", "-W", "-f", fields], doing="list the packages", env=_ENV)
    rows = (line.split("\t") for line in output.splitlines())
    present = {name: (size, status) for name, size, status in rows if status[1:2] != "n"}
    return {name: int(present[name][0] or 0) * 1024 for name in requested if name in present}


def unneeded(names: Iterable[str]) -> list[str]:
    """Those of the packages that no other installed package depends on, also through others.

    apt decides: in a copy of its marks these packages alone are marked as automatically installed.
    Recommendations do not count: nothing recommended these packages before agentbox installed them
    that did not work without them. Raises AgentboxError (exit 6).
    """
    candidates = set(installed_sizes(names))
    if not candidates:
        return []
    with tempfile.TemporaryDirectory(prefix=temporary_prefix("marks")) as directory:
        marks = Path(directory) / "extended_states"
        architectures = run(["dpkg", "--print-architecture"], doing="query dpkg").split()
        marks.write_text(
            "".join(
                f"Package: {name}\nArchitecture: {architecture}\nAuto-Installed: 1\n\n"
                for name in sorted(candidates)
                for architecture in architectures
            )
        )
        output = run(
            [
                *("apt-get", "-s", "autoremove"),
                *("-o", f"Dir::State::extended_states={marks}"),
                *("-o", "APT::AutoRemove::RecommendsImportant=false"),
                *("-o", "APT::AutoRemove::SuggestsImportant=false"),
            ],
            doing="ask apt which packages are needed",
            env=_ENV,
        )
    removed = {line.split()[1] for line in output.splitlines() if line.startswith("Remv ")}
    # Packages that only left their configuration are in no dependency.
    gone = candidates - _fully_installed(candidates)
    return sorted((removed & candidates) | gone)


def owner(path: str) -> str:
    """The package that has this file; "" if none has it."""
    try:
        output = run(["dpkg-query", "-S", path], doing=f"find the package of {path}", env=_ENV)
    except AgentboxError:  # no package has it
        return ""
    return output.partition(": ")[0].partition(":")[0].split(",")[0]


def purge(names: Sequence[str]) -> None:
    """Removes packages with their configuration. An interrupted installation is completed first.

    Raises AgentboxError: exit 3 if not root, exit 6 if apt fails or would remove another package.
    """
    if not names:
        return
    doing = f"remove {', '.join(names)}"
    if os.geteuid() != 0:
        raise AgentboxError(
            f"cannot {doing}: root is required",
            "Run the command with sudo.",
            exit_code=ExitCode.PREREQUISITE,
        )
    run(["dpkg", "--configure", "--pending"], doing="complete the installation", env=_ENV)
    simulated = run(["apt-get", "-s", "purge", *names], doing=doing, env=_ENV)
    affected = {
        line.split()[1] for line in simulated.splitlines() if line.startswith(("Remv ", "Purg "))
    }
    if others := sorted(affected - set(names)):
        raise AgentboxError(f"cannot {doing}: {', '.join(others)} would be removed with them")
    run(["apt-get", "-y", *_LOCK, "purge", *names], doing=doing, env=_ENV, timeout=1800)


def _fully_installed(names: set[str]) -> set[str]:
    fields = "${Package}\t${db:Status-Abbrev}\n"
    output = run(["dpkg-query", "-W", "-f", fields], doing="list the packages", env=_ENV)
    rows = (line.split("\t") for line in output.splitlines())
    return {name for name, status in rows if name in names and status[1:2] == "i"}

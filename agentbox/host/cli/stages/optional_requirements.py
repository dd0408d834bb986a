"""Python packages that only some commands need: those of tests and benchmarks, and the SDK of
`agentbox mcp`.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Literal

from agentbox.core.canonical import file_sha256
from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.paths import CHECKOUT
from agentbox.host.packages.python.pip_failures import explain_failure

# Relative to the environment, so that a copied or moved checkout uses its own.
_PTH_LINE = (
    "import os, sys; root = os.path.realpath(os.path.join(sitedir, '../../../..')); "
    "sys.path += [os.path.join(root, 'tests'), os.path.join(root, 'testkit')]\n"
)


def install_test_requirements() -> None:
    """As `install`; tests also find their own code. Raises AgentboxError (exit 4)."""
    _put_test_code_on_the_path()
    install("test")


def install(group: Literal["test", "mcp"]) -> None:
    """Installs `requirements.<group>` once; the stamp is the file's hash. Raises AgentboxError
    (exit 4).
    """
    requirements = CHECKOUT / f"requirements.{group}"
    stamp = Path(sys.prefix) / f".requirements-{group}.sha256"
    if stamp.exists() and stamp.read_text() == file_sha256(requirements):
        return
    argv = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "--no-cache-dir",
        "--quiet",
        "--no-deps",
    ]
    argv += ["--require-hashes", "--only-binary", ":all:", "-r", str(requirements)]
    process = subprocess.run(
        argv,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if process.returncode != 0:
        cause, remedy = explain_failure(process.stdout)
        raise AgentboxError(
            f"cannot install {requirements.name}: {cause}", remedy, exit_code=ExitCode.FETCH
        )
    stamp.write_text(file_sha256(requirements))


def _put_test_code_on_the_path() -> None:
    """`tests/` (for `support`) and `testkit/` of this checkout, after everything else: tests start
    modules from there as programs.
    """
    pth_file = Path(sysconfig.get_path("purelib")) / "agentbox-tests.pth"
    if not pth_file.exists() or pth_file.read_text() != _PTH_LINE:
        pth_file.write_text(_PTH_LINE)

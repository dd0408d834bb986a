"""Confinement by a kernel whose Landlock lacks mechanisms."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.confined_process import run_json, run_python
from support.confinements import FREE, SYSTEM

from agentbox.sandbox.confinement import Confinement, missing_mechanisms


@pytest.mark.parametrize(
    ("known", "lacks"),
    [(0, {"filesystem", "signals"}), (3, {"filesystem", "signals"}), (5, {"signals"})],
)
def test_an_older_kernel_is_refused_unless_it_is_allowed(known: int, lacks: set[str]) -> None:
    """The mechanism is named; if the manifest allows it the rest is applied."""
    assert set(missing_mechanisms(known)) == lacks
    refused = run_python("said()", FREE, known)
    assert refused.returncode != 0
    assert all(name in refused.stderr for name in lacks)
    allowed = replace(FREE, allow_degraded=tuple(lacks))
    script = (
        "said(held=installation.is_installed(), unix=tried(lambda: socket.socket(socket.AF_UNIX)))"
    )
    assert run_json(script, allowed, landlock_abi=known) == {"held": True, "unix": "EACCES"}


@pytest.mark.parametrize("known", [1, 2, 3, 4, 5, 6])
def test_an_older_abi_still_closes_paths(known: int, tmp_path: Path) -> None:
    """All rights of that ABI are requested, and no others."""
    (tmp_path / "file").touch()
    confinement = Confinement(grants=SYSTEM, allow_degraded=("filesystem", "signals"))
    script = "said(read=tried(lambda: open(sys.argv[1]).close()))"
    assert run_json(script, confinement, str(tmp_path / "file"), landlock_abi=known) == {
        "read": "EACCES"
    }

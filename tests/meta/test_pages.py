"""The commands that pages of docs/ show print what the page shows."""

import shutil
from pathlib import Path

import pytest
from pages import Shown, added_line, masked, shown
from support.forked_program import run_command

from agentbox.core.paths import CHECKOUT

PAGE = CHECKOUT / "docs/howto/change-the-manifest.md"
NEEDS_A_BOX = {"status", "up"}
"""Told by tests/e2e/test_story.py."""
CALLS = [call for call in shown(PAGE) if call.words[0] not in NEEDS_A_BOX]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The story's three manifests: that of the main branch, with the line of the diff, and with a wider one."""
    found = tmp_path_factory.mktemp("story")
    text = (CHECKOUT / "agentbox.toml").read_text()
    added, before = added_line(PAGE)
    assert f"{before}\n" in text
    for name, line in (
        ("main", ""),
        ("agentbox", f"{added}\n"),
        ("wide", 'api.publish_address = "0.0.0.0"\n'),
    ):
        (found / f"{name}.toml").write_text(text.replace(f"{before}\n", f"{before}\n{line}"))
    for name in ("agentbox.lock", "flake.lock"):
        shutil.copy(CHECKOUT / name, found)
    return found


@pytest.mark.parametrize("call", CALLS, ids=lambda call: " ".join(call.words))
def test_the_page_shows_what_the_command_prints(call: Shown, folder: Path) -> None:
    """Byte for byte; what differs is an exit code of 1."""
    done = run_command(*call.words, folder=folder)
    assert (done.stderr, done.stdout) == ("", call.output)
    differs = "diff" in call.words or "wide.toml" in call.words
    assert done.returncode == int(differs)


def test_the_page_tells_the_whole_story() -> None:
    """Reviewer, CI, operator; a mask that took everything would compare nothing."""
    assert [call.words[0] for call in shown(PAGE)] == [
        "config",
        "config",
        "status",
        "up",
        "config",
        "config",
    ]
    assert masked("  image ref  agentbox:c05ccf126988@sha256:" + "e" * 64) == [
        "image ref agentbox:<id>@sha256:<id>"
    ]
    assert masked("drift   resources.memory") != masked("drift   none")

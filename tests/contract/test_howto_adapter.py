"""docs/howto/add-an-adapter.md, followed literally in a copy of the checkout."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from support.shared_environment import share_environment

from agentbox.core.paths import CHECKOUT

PAGE = CHECKOUT / "docs/howto/add-an-adapter.md"
EXAMPLE = CHECKOUT / "examples/onefile-pods"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """What git tracks, in a directory with the name that the page uses, with this environment."""
    found = tmp_path / "agentbox"
    listed = subprocess.run(
        ["git", "-C", CHECKOUT, "ls-files", "-z"], capture_output=True, text=True, check=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        (found / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(CHECKOUT / name, found / name, follow_symlinks=False)
    share_environment(found)
    return found


def test_followed_word_for_word(copy: Path) -> None:
    """Every command succeeds; the class passes outside, fails without its conditions, and passes from the registry."""
    commands = "".join(
        re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    )
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        cwd=copy,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    counts = re.findall(r"^(?:(\d+) failed, )?(\d+) passed", done.stdout, re.MULTILINE)
    (_, first), (failed, _), (_, again), *_tables = counts
    assert int(first) == int(again) > 50
    assert int(failed) > 0
    assert "test_P04_no_update_is_lost" in done.stdout
    assert (copy / "onefile.toml").exists()


def test_the_page_shows_the_example() -> None:
    """The Python block of the page is the end of the example's test."""
    (block,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert (EXAMPLE / "test_onefile_pods.py").read_text().endswith(block)

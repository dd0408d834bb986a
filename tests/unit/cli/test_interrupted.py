"""The exit code of a command that was interrupted."""

import subprocess
import sys
from pathlib import Path

INTERRUPTED = """
from agentbox.host.cli import main
main.cli.main = lambda *_, **__: exec("raise KeyboardInterrupt")
main.main(["status"])
"""


def test_an_interrupt_within_exec_leaves_with_130(tmp_path: Path) -> None:
    """CPython would end by the signal: `dataclass` executes generated text, which Ctrl-C may
    interrupt."""
    (tmp_path / "cut.py").write_text(INTERRUPTED)
    done = subprocess.run(
        [sys.executable, "-m", "cut"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.strip()) == (130, "agentbox: interrupted")

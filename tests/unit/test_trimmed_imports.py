"""Blocked imports of programs, and modules that are searched only once."""

import subprocess
import sys

SEARCHED = """
import sys
from importlib.abc import MetaPathFinder
from agentbox.core.trimmed_imports import block_if_missing
asked = []
class Asked(MetaPathFinder):
    def find_spec(self, name, *_):
        asked.append(name)
sys.meta_path.insert(0, Asked())
for name in ("no_such_module_here", "json.tool"):
    block_if_missing(name)
for _ in range(3):
    try:
        import no_such_module_here
    except ImportError:
        pass
import json.tool
print(asked.count("no_such_module_here"), json.tool.__name__)
"""


def test_a_module_that_is_not_there_is_searched_for_once() -> None:
    """However often it is imported after; an imported one stays."""
    done = subprocess.run(
        [sys.executable, "-c", SEARCHED], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.stdout, done.stderr) == ("1 json.tool\n", "")

"""Kind `exec`: a program runs, ends in time with the expected code, and prints the expected
output.
"""

import re
from tempfile import TemporaryDirectory

from agentbox.box.probes.base import resolve_path
from agentbox.box.probes.child_process import run_child
from agentbox.core.paths import Paths
from agentbox.plan.model import Probe

_MAX_OUTPUT = 200  # characters of output in a reason


def check_exec(probe: Probe, paths: Paths, seconds: float) -> str:
    """No shell is used: `argv[0]` is a path. The home of the program is a temporary directory where
    built files can be executed: `/tmp` is noexec.
    """
    argv = (str(resolve_path(paths, probe.argv[0])), *probe.argv[1:])
    try:
        paths.probe_homes.mkdir(mode=0o700, parents=True, exist_ok=True)
        with TemporaryDirectory(
            dir=paths.probe_homes, prefix=f"{probe.id}-", ignore_cleanup_errors=True
        ) as home:
            result = run_child(argv, seconds, {"HOME": home, "TMPDIR": home, **probe.env})
    except OSError as error:
        return f"{probe.argv[0]} cannot be started: {error.strerror}"
    if result.code is None:
        return f"{probe.argv[0]} did not end within {seconds:g} s"
    if result.code != probe.exit_code:
        return (
            f"{probe.argv[0]} ended with {result.code}, not {probe.exit_code}: "
            f"{_short(result.stderr)}"
        )
    if probe.stdout_regex and not re.search(probe.stdout_regex, result.stdout):
        return f"{probe.argv[0]} printed {_short(result.stdout)!r}"
    return ""


def _short(text: str) -> str:
    return text.strip()[:_MAX_OUTPUT]

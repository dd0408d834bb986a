"""Kind `python-import`: one child of the box's own interpreter imports all modules and reports each
failure.
"""

import json

from agentbox.box.probes.child_process import run_child
from agentbox.core.paths import Paths
from agentbox.plan.model import Probe

_REPORT = """
import importlib, json, sys
failed = {}
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except BaseException as error:
        failed[name] = f"{type(error).__name__}: {error}"
print(json.dumps(failed))
"""


def check_import(probe: Probe, paths: Paths, seconds: float) -> str:
    """Names the modules that cannot be imported, with the reasons."""
    try:
        result = run_child(
            (str(paths.python), "-I", "-B", "-c", _REPORT, *probe.modules), seconds, probe.env
        )
    except OSError as error:
        return f"the interpreter cannot be started: {error.strerror}"
    if result.code is None:
        return f"importing {', '.join(probe.modules)} did not end within {seconds:g} s"
    try:
        failed = json.loads(result.stdout)
    except ValueError:
        return (
            f"the interpreter ended with {result.code} and no report: "
            f"{result.stderr.strip()[-200:]}"
        )
    return "; ".join(f"{name} ({reason})" for name, reason in sorted(failed.items()))

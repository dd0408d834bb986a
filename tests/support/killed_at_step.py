"""A program: runs the command of agentbox, and kills itself with SIGKILL when a trial is about to
enter the step that is named first: `killed_at_step.py STEP WORD...`.
"""

import os
import signal
import sys
from collections.abc import Mapping
from typing import Any

from agentbox.host.cli.main import main
from agentbox.host.generations.store import GenerationStore

_step = sys.argv[1]
_write = GenerationStore.set_trial


def _killed(self: GenerationStore, trial: Mapping[str, Any]) -> None:
    _write(self, trial)
    if trial.get("step") == _step:
        os.kill(os.getpid(), signal.SIGKILL)


setattr(GenerationStore, "set_trial", _killed)  # noqa: B010 - a method cannot be assigned for mypy
sys.argv[1:] = sys.argv[2:]
sys.exit(main())

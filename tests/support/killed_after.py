"""A program: runs the command of agentbox, and kills itself with SIGKILL as soon as a function has
returned: `killed_after.py MODULE:NAME WORD...`; NAME may be a method, as `Class.method`.
"""

import functools
import importlib
import os
import signal
import sys
from typing import Any

from agentbox.host.cli.main import main

_module, _, _name = sys.argv[1].partition(":")
*_outer, _last = _name.split(".")
_owner: Any = functools.reduce(getattr, _outer, importlib.import_module(_module))
_function = getattr(_owner, _last)


@functools.wraps(_function)
def _killed(*arguments: Any, **named: Any) -> None:
    _function(*arguments, **named)
    os.kill(os.getpid(), signal.SIGKILL)


setattr(_owner, _last, _killed)
sys.argv[1:] = sys.argv[2:]
sys.exit(main())

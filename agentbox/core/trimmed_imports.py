"""What a program's libraries import and the program never uses, kept out of its memory.

Only `__main__` of a program calls `leave_out` and `stand_in`, before it imports anything else: a library that is imported into
a test or a command stays whole. tests/unit/test_program_imports.py tells what each program may import.
"""

import sys
from importlib.util import find_spec
from types import ModuleType
from typing import Any


def block_imports(*names: str) -> None:
    """Modules that a library does without where they are not installed: importing one is an ImportError."""
    for name in names:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]


def block_if_missing(name: str) -> None:
    """For a module that a library tries to import at each call: where it is not installed, that is found out here and now."""
    if name not in sys.modules and find_spec(name) is None:
        block_imports(name)


def stub_module(name: str, **members: Any) -> None:
    """A module with these members instead of the real one: for what a library needs in order to be imported, no more."""
    module = ModuleType(name, "A stand-in: see agentbox.core.trimmed_imports.")
    module.__dict__.update(members)
    sys.modules.setdefault(name, module)

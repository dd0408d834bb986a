"""Keeps modules that libraries import but programs never use out of memory. Call `block_imports`
and `stub_module` only in the `__main__` of a program, before other imports: libraries in tests and
commands stay complete. tests/unit/test_program_imports.py lists what each program may import.
"""

import sys
from importlib.util import find_spec
from types import ModuleType
from typing import Any


def block_imports(*names: str) -> None:
    """Makes optional modules of libraries appear as not installed: importing one raises
    ImportError.
    """
    for name in names:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]


def block_if_missing(name: str) -> None:
    """For a module that a library tries to import at each call: if it is not installed, this is
    determined once.
    """
    if name not in sys.modules and find_spec(name) is None:
        block_imports(name)


def stub_module(name: str, **members: Any) -> None:
    """Installs a module with these members in place of the real one, for imports of a library that
    never uses it.
    """
    module = ModuleType(name, "A stub: see agentbox.core.trimmed_imports.")
    module.__dict__.update(members)
    sys.modules.setdefault(name, module)


def skip_package_imports(name: str) -> None:
    """Installs a package without what its `__init__` imports: its modules are imported by their own
    names. Nothing happens if it is not installed.
    """
    if name in sys.modules or (spec := find_spec(name)) is None:
        return
    package = ModuleType(name, "Without its imports: see agentbox.core.trimmed_imports.")
    package.__spec__, package.__path__ = spec, list(spec.submodule_search_locations or ())
    sys.modules[name] = package

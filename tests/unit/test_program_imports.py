"""What the programs of a box import: what stays in memory for as long as the box runs, whether it
is used or not."""

import subprocess
import sys

import pytest

# Prints the packages of others in memory, and which of the words are real modules there.
CODE = """
import importlib, sys
before = set(sys.modules)
imports, words = (argument.split() for argument in sys.argv[1:])
for name in imports:
    importlib.import_module(name)
real = {name for name in sys.modules if getattr(sys.modules[name], "__spec__", None)}
roots = {name.partition(".")[0] for name in real - before} - sys.stdlib_module_names - {"agentbox", "__mp_main__"}
print(*sorted(root for root in roots if not root.startswith("_")))
print(*sorted(real & set(words)))
"""
CONSOLE = {"rich", "pygments", "click", "curses"}
PROCESSES = {"multiprocessing", "uvicorn.main", "uvicorn.supervisors"}
SERVERS = {"http.server", "wsgiref", "unittest", "pydoc", "xml.dom"}
MANIFEST = {
    "agentbox.manifest.features",
    "agentbox.manifest.load",
    "agentbox.manifest.model",
}  # reading one, and a new plan
LIBRARIES = {
    "httpx",
    "requests",
    "numpy",
    "psycopg",
    "jsonschema",
    "opentelemetry",
    "importlib.metadata",
}
# With what it imports: typing_extensions only before Python 3.13.
STARLETTE = {"starlette", "anyio"} | (
    {"typing_extensions"} if sys.version_info < (3, 13) else set()
)
CONFIGURATION = {"configparser", "html.entities", "logging.config", "starlette.formparsers"}
# Modules to import, packages of others that it has, and what it has not.
PROGRAMS = {
    "agents": (
        "agentbox.agents.__main__ agentbox.agents.main",
        {"apsw", "structlog"},
        CONSOLE | PROCESSES | SERVERS | LIBRARIES | MANIFEST | {"ssl", "_ssl", "_hashlib", "http.client", "email"},
    ),
    "agents, at its end": (
        "agentbox.agents.__main__ agentbox.box.supervision.rpc",
        set(),
        {"ssl", "_ssl"},
    ),
    "gateway": (
        "agentbox.gateway.__main__ agentbox.gateway.main",
        STARLETTE | {"h11", "httptools", "structlog", "uvicorn", "uvloop"},
        CONSOLE | PROCESSES | SERVERS | LIBRARIES | MANIFEST | CONFIGURATION | {"apsw"},
    ),
    "api": (
        "agentbox.api.__main__ agentbox.api.main",
        STARLETTE | {"apsw", "httptools", "prometheus_client", "structlog", "uvicorn", "uvloop"},
        CONSOLE | PROCESSES | SERVERS | LIBRARIES | MANIFEST | CONFIGURATION | {"agentbox.plan.render"},
    ),
    "mcp-host": (
        "agentbox.mcphost.__main__ agentbox.mcphost.main",
        {"apsw", "structlog", "mcp", "mcp_types", "anyio", "opentelemetry", "pydantic", "pydantic_core", "annotated_types", "typing_inspection", "typing_extensions"},
        CONSOLE | PROCESSES | SERVERS | MANIFEST
        | {"mcp.server", "starlette", "uvicorn", "cryptography", "httpx2", "httpx", "jsonschema", "numpy", "psycopg"},
    ),
    "supervisord": (
        "agentbox.box.boot.supervisord agentbox.box.boot.supervisord_wakeup supervisor.supervisord supervisor.http supervisor.rpcinterface",
        {"supervisor"},
        CONSOLE | PROCESSES | SERVERS | LIBRARIES
        | {"ssl", "_ssl", "_hashlib", "http.client", "email.parser", "importlib.resources", "zipfile", "supervisor.web", "html.entities", "html.parser", "lzma"},
    ),
    "launcher": (
        "agentbox.sandbox.launcher.launcher",
        set(),
        CONSOLE | PROCESSES | SERVERS | LIBRARIES | {"asyncio", "ssl", "hashlib", "logging", "email", "subprocess"},
    ),
}  # fmt: skip


def imported(modules: str, words: set[str]) -> tuple[set[str], set[str]]:
    """Packages of others, and which of these words are imported."""
    argv = [sys.executable, "-I", "-c", CODE, modules, " ".join(sorted(words))]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    others, found = done.stdout.splitlines()
    return set(others.split()), set(found.split())


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_imports_what_it_uses(program: str) -> None:
    """The control plane of an idle box has a bound of memory (bench/footprint.py): imports are most of it."""
    modules, others, absent = PROGRAMS[program]
    had, found = imported(modules, absent)
    assert found == set()
    assert had == others

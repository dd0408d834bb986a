"""`python -I -m agentbox.gateway`: the program gateway."""

import sys

from agentbox.core.trimmed_imports import block_imports, stub_module

block_imports("rich")  # structlog: tracebacks for a terminal
stub_module(
    "uvicorn.main", Server=None, main=None, run=None
)  # its command: click, reloaders, a process manager

if __name__ == "__main__":
    from agentbox.gateway.main import main

    sys.exit(main())

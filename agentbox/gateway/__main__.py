"""`python -I -m agentbox.gateway`: the program gateway."""

import sys

from agentbox.core.trimmed_imports import leave_out, stand_in

leave_out("rich")  # structlog: tracebacks for a terminal
stand_in("uvicorn.main", Server=None, main=None, run=None)  # its command: click, reloaders, a process manager

if __name__ == "__main__":
    from agentbox.gateway.main import main

    sys.exit(main())

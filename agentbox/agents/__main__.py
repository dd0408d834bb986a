"""`python -I -m agentbox.agents`: the program agent-host."""

import sys

from agentbox.trimmed_imports import leave_out

leave_out("rich")  # structlog: tracebacks for a terminal
leave_out("ssl")  # asyncio: TLS, which this program does not speak

if __name__ == "__main__":
    from agentbox.agents.main import main

    sys.exit(main())

"""`python -I -m agentbox.sessions`: the program session-host."""

import sys

from agentbox.core.trimmed_imports import block_imports

block_imports("rich")  # structlog: tracebacks for a terminal
block_imports("ssl", "_hashlib")  # OpenSSL: no TLS here, and hashlib has its own implementations

if __name__ == "__main__":
    from agentbox.sessions.main import main

    sys.exit(main())

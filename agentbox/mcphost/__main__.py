"""`python -I -m agentbox.mcphost`: the program mcp-host."""

import sys

from agentbox.core.trimmed_imports import block_imports, skip_package_imports

block_imports("rich")  # structlog: tracebacks for a terminal
for package in ("mcp", "mcp.client"):  # they import the servers and the command line of the SDK
    skip_package_imports(package)

if __name__ == "__main__":
    from agentbox.mcphost.main import main

    sys.exit(main())

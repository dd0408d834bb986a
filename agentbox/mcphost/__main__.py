"""`python -m agentbox.mcphost`: the program mcp-host."""

import sys

from agentbox.mcphost.main import main

if __name__ == "__main__":
    sys.exit(main())

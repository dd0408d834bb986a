"""`python -m agentbox.backup`: the program `backup`."""

import sys

from agentbox.backup.program import main

if __name__ == "__main__":
    sys.exit(main())

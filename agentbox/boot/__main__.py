"""`python -I -m agentbox.boot`: the entry point of the image."""

import sys

from agentbox.boot.main import main

if __name__ == "__main__":
    sys.exit(main())

"""`python -I -m agentbox.box.boot`: the entry point of the image."""

import sys

from agentbox.box.boot.main import main

if __name__ == "__main__":
    sys.exit(main())

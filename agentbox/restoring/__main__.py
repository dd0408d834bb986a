"""Entry point of the program."""

import sys

from agentbox.restoring.main import main

sys.exit(main(sys.argv[1:]))

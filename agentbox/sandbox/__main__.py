"""`python -I -m agentbox.sandbox FD`: the launcher."""

import sys

from agentbox.sandbox.launcher.launcher import main

main(sys.argv[1:])

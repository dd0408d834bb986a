"""`python -I -m agentbox.agents.bridge`."""

import sys

from agentbox.agents.bridge.main import main

sys.exit(main(sys.argv[1:]))

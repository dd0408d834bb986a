"""`python -I -m agentbox.agents`: the program agent-host."""

import sys

from agentbox.agents.main import main

sys.exit(main())

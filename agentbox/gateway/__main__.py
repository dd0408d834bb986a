"""`python -I -m agentbox.gateway`: the program gateway."""

import sys

from agentbox.gateway.main import main

sys.exit(main())

"""`python -m agentbox` is the command line."""

from agentbox.cli.main import main

main()

"""`python -m agentbox` is the command line."""

import signal
import sys

_PREREQUISITE = 3  # agentbox.errors.ExitCode, whose file could be the one that is missing


def start() -> None:
    """Ctrl-C while modules are being imported ends the process without a traceback; then `main` answers for it."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        from agentbox.cli.main import main

        main()
    except ModuleNotFoundError as error:
        if (error.name or "agentbox").partition(".")[0] == "agentbox":
            raise
        sys.stderr.write(
            f"agentbox: cannot run: the Python environment {sys.prefix} has no module {error.name}\n"
            "  Remove that folder and run the command again: it is made anew.\n"
        )
        sys.exit(_PREREQUISITE)


start()

"""`python -m agentbox` is the command line."""

import signal


def start() -> None:
    """Ctrl-C while modules are being imported ends the process without a traceback; then `main` answers for it."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from agentbox.cli.main import main

    main()


start()

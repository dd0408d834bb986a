"""`python -m agentbox` is the command line."""

import contextlib
import os
import signal
import sys
from typing import NoReturn

_PREREQUISITE = 3  # agentbox.core.errors.ExitCode, whose file could be the one that is missing


def start() -> None:
    """Ctrl-C while modules are imported ends the process without a traceback; later, `main`
    handles it."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        from agentbox.host.cli.main import main

        main()
    except SystemExit as ended:
        _exit(ended)
    except ModuleNotFoundError as error:
        if (error.name or "agentbox").partition(".")[0] == "agentbox":
            raise
        sys.stderr.write(
            f"agentbox: cannot run: the Python environment {sys.prefix}"
            f" has no module {error.name}\n"
            "  Remove that folder and run the command again: it is made anew.\n"
        )
        sys.exit(_PREREQUISITE)


def _exit(ended: SystemExit) -> NoReturn:
    """Ends the process at once while another thread still runs (a download whose server hangs):
    CPython may crash when it finalises under one."""
    threading = sys.modules.get("threading")
    if threading is None or not any(thread.daemon for thread in threading.enumerate()):
        raise ended
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(ended.code if isinstance(ended.code, int) else bool(ended.code))


start()

"""Command line of the bridge: serves local agents, or those of another box."""

import argparse
import asyncio
import fcntl
import os
import sys
from collections.abc import Sequence

from agentbox.agents.bridge import forward, local_host
from agentbox.agents.config import HostConfig
from agentbox.box.supervision.boot_record import load_plan, read_boot_record
from agentbox.core import logging
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths, pop_from_environment

PROGRAM = "bridge"
_FIRST_FREE = 3


def main(arguments: Sequence[str]) -> int:
    """Return the exit code. Operator errors are one line on stderr."""
    pipes = claim_stdio()
    options = _parser().parse_args(arguments)
    paths = Paths.for_this_process()
    try:
        if options.url:
            logging.configure(PROGRAM)
            asyncio.run(
                forward.serve(options.url, _token(options, paths), options.ca_file, pipes, paths)
            )
            return 0
        record = read_boot_record(paths)
        plan = record.load_plan() if record else load_plan(paths.plan)
        logging.configure(PROGRAM, plan.observability.log_level)
        asyncio.run(local_host.serve(HostConfig.from_plan(plan, paths), pipes))
    except AgentboxError as error:
        sys.stderr.write(f"{error.message}\n{error.hint}\n")
        return int(error.exit_code)
    return 0


def claim_stdio() -> tuple[int, int]:
    """Move stdin and stdout to descriptors that no child inherits. Later prints go to stderr and
    reads of stdin are empty, so that only messages reach the peer."""
    inward, outward = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE) for fd in (0, 1))
    devnull = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(devnull, 0)
    os.dup2(2, 1)
    os.close(devnull)
    return inward, outward


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m agentbox.agents.bridge",
        description="Serves agents over JSON-RPC on stdin and stdout: "
        "of this machine, with its own state, or of another box.",
    )
    parser.add_argument("--url", default="", help="URL of another box whose agents are served")
    parser.add_argument(
        "--token-env",
        default="",
        metavar="NAME",
        help="environment variable with a token of that box",
    )
    parser.add_argument(
        "--token-file", default="", metavar="PATH", help="file with a token of that box"
    )
    parser.add_argument("--ca-file", default="", metavar="PATH", help="additional CA certificate")
    return parser


def _token(options: argparse.Namespace, paths: Paths) -> str:
    """From the variable or the file: a command line is visible to every process. "" sends none."""
    if options.token_env:
        return pop_from_environment(options.token_env) or ""
    if not options.token_file:
        return ""
    try:
        return paths.resolve(options.token_file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise AgentboxError(
            f"cannot read the token file: {type(error).__name__}",
            "Pass a text file that uid 1000 can read.",
        ) from error

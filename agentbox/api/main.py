"""The entry point of the API."""

import gc
import sys

import uvloop

from agentbox.api.app import build
from agentbox.api.server import listen_addresses, serve
from agentbox.box.supervision.backoff import backoff
from agentbox.box.supervision.boot_record import load_plan, read_boot_record
from agentbox.box.supervision.current_boot import lock_state
from agentbox.box.supervision.program_failures import report_program_failure
from agentbox.core import logging
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths
from agentbox.plan.names import API


def main() -> int:
    """Exits 0 after SIGTERM; 1 (7 when a resource is in use) with one sentence on stderr."""
    paths = Paths.for_this_process()
    try:
        backoff(paths, API)
        record = read_boot_record(paths)
        plan = record.load_plan() if record else load_plan(paths.plan)
        logging.configure(API, plan.observability.log_level)
        state_lock = _lock_state_volume(paths)
        api = build(plan, paths, record)
        gc.freeze()  # objects created at start live until exit: the collector can skip them
        uvloop.run(serve(api, listen_addresses(api)))
        del state_lock
    except AgentboxError as error:
        print(f"{error.message}. {error.hint}", file=sys.stderr, flush=True)
        report_program_failure(paths, API, error)
        return int(error.exit_code)
    return 0


def _lock_state_volume(paths: Paths) -> int:
    try:
        return lock_state(paths)
    except OSError as error:
        raise AgentboxError(
            f"cannot use the state volume: {error.strerror}",
            "Give uid 1000 write access to it.",
        ) from error

"""`python -m agentbox.box.programs.telegram TOKEN_NAME CHAT_NAME`: the names of two secrets of the
box.
"""

import logging
import sys

from agentbox.box.programs.telegram.chat_sender import ChatSender
from agentbox.box.programs.telegram.mirror import Mirror
from agentbox.box.supervision.boot_record import load_plan, read_boot_record
from agentbox.box.supervision.secrets import find_token, read_secret
from agentbox.client import BoxClient
from agentbox.core import logging as logs
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths
from agentbox.plan.model import Plan
from agentbox.policy.outgoing import Outgoing

PROGRAM = "telegram-mirror"


def main(token_name: str, chat_name: str) -> int:
    """Returns the exit code. A configuration error is one line on stderr."""
    paths = Paths.for_this_process()
    try:
        plan = _plan(paths)
        logs.configure(PROGRAM, plan.observability.log_level)
        logging.getLogger("httpx").setLevel(
            logging.WARNING
        )  # it logs URLs, and this one contains the token
        chat = ChatSender(
            _secret(paths, token_name),
            _secret(paths, chat_name),
            outgoing=Outgoing.read(paths),
        )
        with _client(paths, plan) as client:
            Mirror(client, chat, paths.slot("telegram") / "position", plan.name).run()
    except AgentboxError as error:
        sys.stderr.write(f"{error.message}\n{error.hint}\n")
        return int(error.exit_code)
    return 0


def _plan(paths: Paths) -> Plan:
    record = read_boot_record(paths)
    return record.load_plan() if record else load_plan(paths.plan)


def _secret(paths: Paths, name: str) -> str:
    secret = read_secret(paths, name)
    if secret is None:
        raise AgentboxError(
            f"cannot mirror to the chat: secret {name} is not set", f"agentbox secrets set {name}"
        )
    return secret[0]


def _client(paths: Paths, plan: Plan) -> BoxClient:
    token = find_token(paths, plan)
    assert token is not None  # phase 2 has generated one before any program runs
    return BoxClient(f"http://127.0.0.1:{plan.api.port}", token=token.value)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

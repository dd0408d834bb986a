"""The command `agentbox-ctl`: calls the agent API once, for agents not written in Python.

    agentbox-ctl hello
    agentbox-ctl memory.store '{"key": "k", "value": 1}'
    echo '{"title": "look into it"}' | agentbox-ctl bead.create -

Prints one JSON object: `{"ok": true, "result": …}`, or
`{"ok": false, "error": {"code", "message", "data"}}` with exit code 1.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from agentbox.client.agent_api import AgentApiClient, AgentApiDenied
from agentbox.core.errors import AgentboxError

USAGE = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit code: 0, 1 for an error response or an unreachable agent API, 2 for wrong
    arguments."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if len(arguments) not in (1, 2) or arguments[0].startswith("-"):
        sys.stderr.write(f"usage: agentbox-ctl METHOD [PARAMS | -]\n\n{(__doc__ or '').strip()}\n")
        return 0 if arguments in (["-h"], ["--help"]) else USAGE
    try:
        params = json.loads(
            (sys.stdin.read() if arguments[1] == "-" else arguments[1])
            if len(arguments) > 1
            else "{}"
        )
        if not isinstance(params, dict):
            raise ValueError("it must be an object")
    except ValueError as error:
        return _print_error("usage", f"cannot read the params: {error}", exit_code=USAGE)
    try:
        with AgentApiClient() as agent_api:
            return _print_document(
                {"ok": True, "result": agent_api.call(arguments[0], **params)}, 0
            )
    except AgentApiDenied as denied:
        return _print_error(denied.code, denied.message, denied.data)
    except AgentboxError as unreachable:
        return _print_error("unreachable", unreachable.message)


def _print_error(
    code: str, message: str, data: Mapping[str, Any] | None = None, *, exit_code: int = 1
) -> int:
    return _print_document(
        {"ok": False, "error": {"code": code, "message": message, "data": dict(data or {})}},
        exit_code,
    )


def _print_document(document: dict[str, Any], code: int) -> int:
    sys.stdout.write(json.dumps(document) + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main())

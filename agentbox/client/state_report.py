"""`python -I -m agentbox.client.state_report`, in a box that its host reaches over no network:
waits until it is ready, and prints what an upgrade or a restore compares, as one JSON object. The
request is on stdin.
"""

import http.client
import json
import sys
import time
from contextlib import closing
from typing import Final

from agentbox.client.errors import ApiError
from agentbox.client.sync.client import BoxClient
from agentbox.contracts.generation import GenerationState
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths
from agentbox.core.records.wire import Record, record, to_json

_POLL_SECONDS: Final = 0.1
_CLIENT_SECONDS: Final = 60.0


@record
class ReportRequest(Record):
    """`token`: of the administrator, "" = the one that the box made. `seq`: a record of the journal
    to show, -1 = none. `agent`: also run one that ends at once. `settle`: seconds in which the box
    must stay ready.
    """

    port: int
    seconds: float
    token: str = ""
    seq: int = -1
    agent: bool = False
    settle: float = 0.0


@record
class StateReport(Record):
    """`missing`: why it is not ready, () if it is; the other members are only of a ready box.
    `degraded`: slots that it is ready without. `state`: as of `GET /v1/generation`. `record_hash`:
    of the record that was asked for, "" if there is none. `failure`: what else is wrong.
    """

    missing: tuple[str, ...] = ()
    degraded: tuple[str, ...] = ()
    state: GenerationState | None = None
    record_hash: str = ""
    failure: str = ""


def report(request: ReportRequest) -> StateReport:
    """Asks the API of this box."""
    deadline = time.monotonic() + request.seconds
    while (verdict := _ready(request.port)).missing and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    if verdict.missing:
        return verdict
    token = request.token or Paths.for_this_process().api_key.read_text().strip()
    url = f"http://127.0.0.1:{request.port}"
    try:
        with BoxClient(url, token=token, timeout=_CLIENT_SECONDS) as client:
            state = client.generation.show()
            found = _hash_of(client, request.seq)
            failure = _try_agent(client) if request.agent else ""
    except AgentboxError as error:
        return StateReport(failure=error.message)
    return StateReport(
        degraded=verdict.degraded,
        state=state,
        record_hash=found,
        failure=failure or _stay_ready(request),
    )


def _ready(port: int) -> StateReport:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=2)) as connection:
        try:
            connection.request("GET", "/ready")
            response = connection.getresponse()
            body = json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError):
            return StateReport(missing=("a response of the management API",))
    if response.status == 200:
        return StateReport(degraded=tuple(body.get("degraded", ())))
    return StateReport(missing=tuple(body.get("missing", ())) or ("a reason",))


def _hash_of(client: BoxClient, seq: int) -> str:
    if seq < 0:
        return ""
    events = client.events.read(since=seq - 1, limit=1).events
    return events[0].hash if events and events[0].seq == seq else ""


def _try_agent(client: BoxClient) -> str:
    try:
        reason = client.generation.try_agent().reason
    except ApiError as error:
        if error.code == "adapter-disabled":
            return ""
        raise
    return f"an agent that runs `true` failed: {reason}" if reason else ""


def _stay_ready(request: ReportRequest) -> str:
    deadline = time.monotonic() + request.settle
    while time.monotonic() < deadline:
        if missing := _ready(request.port).missing:
            return f"it did not stay ready: {', '.join(missing)}"
        time.sleep(_POLL_SECONDS)
    return ""


if __name__ == "__main__":
    print(to_json(report(ReportRequest.from_wire(json.load(sys.stdin)))))

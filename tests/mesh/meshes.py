"""What the tests of the mesh share."""

from collections.abc import Callable
from typing import Any

import pytest
from support.api_box import ApiBox

from agentbox.client import ApiError

SCALE = 20.0  # a heartbeat of 30 s in 1.5 s, a lease of 100 s in 5 s
Start = Callable[..., ApiBox]


def refusal(call: Callable[[], object]) -> ApiError:
    """What the call is refused with."""
    with pytest.raises(ApiError) as caught:
        call()
    return caught.value


def told(box: ApiBox, kind: str, **wanted: Any) -> list[dict[str, Any]]:
    """Data of the journal's events of that type with these members, oldest first."""
    with box.client() as client:
        events = client.call("read_events", query={"limit": 1000, "types": kind})["events"]
    return [event["data"] for event in events if wanted.items() <= event["data"].items()]

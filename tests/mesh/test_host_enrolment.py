"""Who may register at a host, and with what."""

from typing import Any
from uuid import uuid4

import pytest
from meshes import Start, refusal
from support.api_box import ApiBox
from support.mesh import ENROLMENT, ManualBox, host_plan


@pytest.mark.parametrize(
    "wrong",
    [
        {"instance_id": "x"}, {"instance_id": str(uuid4()).upper()}, {"instance_secret": "AAAA"}, {"boot_id": ""},
        {"boot_id": "b" * 300}, {"contracts": []}, {"contracts": {str(n): "1.0.0" for n in range(20)}}, {"protocol": "1"},
    ],
)  # fmt: skip
def test_what_cannot_register(host: ApiBox, wrong: dict[str, Any]) -> None:
    """400; unknown members are ignored."""
    assert refusal(lambda: ManualBox(host).register(**wrong)).status == 400
    assert ManualBox(host).register(a_member_of_tomorrow=1)


def test_only_the_enrolment_token_joins(host: ApiBox) -> None:
    """A named token with mesh:join can too; a session's cannot, and the enrolment token is valid
    for nothing else."""
    box = ManualBox(host)
    box.register()
    with box.client() as client, host.client(ENROLMENT) as enrolment, host.client() as operator:
        assert refusal(lambda: client.call("mesh_register", body=box.register_body())).status == 403
        assert refusal(lambda: enrolment.call("list_beads")).status == 403
        assert refusal(lambda: enrolment.call("mesh_sessions")).status == 403
        named = operator.call("create_token", body={"name": "joiner", "scopes": ["mesh:join"]})[
            "value"
        ]
        body = {"name": "x", "scopes": ["mesh:session"]}
        assert refusal(lambda: operator.call("create_token", body=body)).status == 400
    with host.client(named) as joiner:
        assert (
            joiner.call("mesh_register", body=ManualBox(host).register_body())["resumed"] is False
        )


def test_a_box_that_is_no_host_says_so(start: Start) -> None:
    """403 for every caller."""
    alone = start(host_plan(mode="standalone"))
    with alone.client() as operator:
        refused = refusal(
            lambda: operator.call("mesh_register", body=ManualBox(alone).register_body())
        )
        assert (refused.status, refused.code) == (403, "not-admitted")
        assert operator.call("mesh_status")["mode"] == "standalone"
    with alone.client(ENROLMENT) as stranger:
        assert refusal(lambda: stranger.call("list_beads")).status == 401

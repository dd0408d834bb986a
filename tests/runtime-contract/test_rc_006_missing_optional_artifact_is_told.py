"""RC-006: a missing optional artifact is reported, and the box still becomes ready. Columns D and
H. No feature of this release has an optional probe, so the image's plan gets one."""

from collections.abc import Callable
from dataclasses import replace

from harness.box import Box

from agentbox.plan.model import Plan, Probe

ABSENT = Probe(
    id="extra-tool",
    feature="core",
    kind="path",
    type="exec",
    path="/usr/bin/extra-tool",
    required=False,
)
PRESENT = Probe(
    id="extra-shell", feature="core", kind="path", type="exec", path="/usr/bin/bash", required=False
)


def with_optional_probes(plan: Plan) -> Plan:
    return replace(plan, probes=(*plan.probes, ABSENT, PRESENT))


def test_rc_006(make_box: Callable[..., Box]) -> None:
    """`OptionalArtifactMissing` with id and reason, ready, listed in `/health`; the present
    optional one is not."""
    box = make_box(alter=with_optional_probes)
    box.start()
    assert box.wait_ready()["ready"] is True
    told = [event for event in box.events() if event["event"] == "OptionalArtifactMissing"]
    assert [event["capability"] for event in told] == [ABSENT.id]
    assert told[0]["reason"]
    assert box.event("RuntimeClosureValidated")["optional_missing"] == [ABSENT.id]
    assert any(
        e["event"] == "CapabilityValidated" and e["capability"] == PRESENT.id for e in box.events()
    )
    assert ABSENT.id in box.get("/health").json["artifacts"]["failed"]
    assert PRESENT.id not in box.get("/health").json["artifacts"]["failed"]

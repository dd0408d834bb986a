"""`sandbox:proven` from the reports of canaries."""

from dataclasses import replace

from agentbox.box.readiness.requirements.sandbox import STALE_SECONDS, SandboxRequirement
from agentbox.contracts.agent_host.canaries import CanaryReport
from agentbox.core import clock

GOOD = CanaryReport(revision=1, at=clock.from_wire("2026-01-01T00:00:00.000Z"), rules=8)
NOT_RUN = ("sandbox:canary not enforced",)


class Found:
    """The canaries' results, and the current time."""

    def __init__(self) -> None:
        self.report: CanaryReport | None = None
        self.now = 0.0
        self.requirement = SandboxRequirement(lambda: self.report, lambda: self.now)


async def test_nothing_is_proven_before_the_first_run() -> None:
    """No report, and one of a run that has not ended."""
    found = Found()
    assert await found.requirement.check() == NOT_RUN
    found.report = CanaryReport(revision=1)
    assert await found.requirement.check() == NOT_RUN
    assert found.requirement.evidence() == {}


async def test_a_good_run_is_evidence_and_a_bad_one_names_its_rules() -> None:
    """In order of name; counts and moment are in the evidence either way."""
    found = Found()
    found.report = GOOD
    assert await found.requirement.check() == ()
    assert found.requirement.evidence() == {
        "sandbox": {"passed": 8, "rules": 8, "at": "2026-01-01T00:00:00.000Z"}
    }
    found.report = replace(GOOD, revision=2, failed=("write", "read"))
    assert await found.requirement.check() == (
        "sandbox:read not enforced",
        "sandbox:write not enforced",
    )
    assert found.requirement.evidence()["sandbox"]["passed"] == 6


async def test_a_run_that_could_not_be_made_is_no_pass() -> None:
    """Neither a failed one, nor one without checks, nor an old one."""
    found = Found()
    found.report = replace(GOOD, failed=("canary",))
    assert await found.requirement.check() == NOT_RUN
    assert found.requirement.evidence()["sandbox"]["passed"] == 0
    found.report = replace(GOOD, rules=0)
    assert await found.requirement.check() == NOT_RUN
    found.report = GOOD
    assert await found.requirement.check() == ()
    found.now = STALE_SECONDS + 1
    assert await found.requirement.check() == NOT_RUN
    found.report = replace(GOOD, revision=9)
    assert await found.requirement.check() == ()

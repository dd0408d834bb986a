"""The security report: the controls, what an exception gives up, and why."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.plans import plan_of

from agentbox.plan.model import Device, Plan, SecurityExceptionPlan, TmpfsPlan, VolumePlan
from agentbox.plan.render.controls import CONTROL_LINES, ENGINE, FIELDS, PlanAssessment
from agentbox.plan.render.kubernetes.security import BASELINE, PRIVILEGED, RESTRICTED
from agentbox.plan.render.security_report import report, report_json, security_report

# The recommendations of CIS Docker 1.6 that a box follows, less those for the engine.
CIS = {
    "4.1", "4.6", "4.8", "4.10", "5.4", "5.5", "5.6", "5.7", "5.8", "5.9", "5.10", "5.11", "5.12", "5.13", "5.14", "5.15",
    "5.16", "5.17", "5.18", "5.19", "5.20", "5.21", "5.22", "5.25", "5.26", "5.27", "5.28", "5.29", "5.30", "5.31", "5.32",
}  # fmt: skip
POD = {"Running as Non-root", "Capabilities", "Volume Types", "Seccomp", "Privilege Escalation"}
PLAN = plan_of()


def with_delta(**added: Any) -> Plan:
    return replace(
        PLAN,
        exceptions=(
            SecurityExceptionPlan(key="desktop", reason="the display server needs it", **added),
        ),
    )


def lost(plan: Plan) -> dict[str, str]:
    """Control -> reason, over the complete effective profile."""
    return {
        control: why
        for row in report(plan)["effective"]
        for control, why in row["gives_up"].items()
    }


def test_every_control_stands_on_one_line_and_the_baseline_holds_them_all() -> None:
    """None of the table in the design is missing, none is given up, and none is named twice."""
    numbers = [number for line in CONTROL_LINES for number in line.cis]
    assert sorted(numbers) == sorted(CIS)
    assert not set(numbers) & set(ENGINE)
    assert {name for line in CONTROL_LINES for name in line.pod} >= POD
    assert lost(PLAN) == {}
    held = {control for row in report(PLAN)["baseline"] for control in row["holds"]}
    assert {f"CIS {number}" for number in CIS} <= held
    assert report(PLAN)["pod_security"] == RESTRICTED


def test_every_field_of_a_delta_stands_on_a_line() -> None:
    """Whatever an exception adds is shown."""
    assert {field for line in CONTROL_LINES for field in line.fields} == set(FIELDS)


@pytest.mark.parametrize(
    ("added", "gives_up", "level"),
    [
        ({"tmpfs": (TmpfsPlan(target="/x", size=1 << 20, mode="0700", exec=True),)}, set(), RESTRICTED),
        ({"volumes": (VolumePlan(source="x", target="/x"),)}, set(), RESTRICTED),
        ({"group_add": ("video",)}, set(), RESTRICTED),
        ({"seccomp": "wide"}, set(), RESTRICTED),
        ({"devices": ("/dev/kfd",)}, {"CIS 5.18"}, RESTRICTED),
        ({"device_requests": (Device(driver="nvidia", count=-1, capabilities=("gpu",)),)}, {"CIS 5.18"}, RESTRICTED),
        ({"cap_add": ("NET_BIND_SERVICE",)}, {"CIS 5.4"}, RESTRICTED),
        ({"cap_add": ("CHOWN",)}, {"CIS 5.4", "PSS Capabilities (restricted)"}, BASELINE),
        (
            {"cap_add": ("NET_ADMIN",)},
            {"CIS 5.4", "PSS Capabilities (baseline)", "PSS Capabilities (restricted)"},
            PRIVILEGED,
        ),
        (
            {"volumes": (VolumePlan(source="/srv/models", target="/x"),)},
            {"PSS HostPath Volumes (baseline)", "PSS Volume Types (restricted)"},
            PRIVILEGED,
        ),
    ],
    ids=["tmpfs", "volume", "group", "seccomp", "device", "request", "bind-service", "chown", "net-admin", "host-folder"],
)  # fmt: skip
def test_each_field_gives_up_what_it_must_and_no_more(
    added: dict[str, Any], gives_up: set[str], level: str
) -> None:
    """Named at the exception and in the effective profile, each with its cause; the pod's level follows."""
    plan = with_delta(**added)
    found = report(plan)
    (exception,) = found["exceptions"]
    (row,) = exception["adds"]
    assert set(row["gives_up"]) == set(lost(plan)) == gives_up
    assert all(row["gives_up"].values())
    assert found["pod_security"] == level
    held = {control for line in found["effective"] for control in line["holds"]}
    assert {control for control in gives_up if control.startswith("CIS")}.isdisjoint(held)


def test_the_baseline_is_told_as_it_is_without_exceptions() -> None:
    """Whatever is added to it."""
    assert report(with_delta(cap_add=("NET_ADMIN",)))["baseline"] == report(PLAN)["baseline"]


def test_a_port_on_every_address_gives_up_its_control() -> None:
    """Not by an exception, and still reported."""
    assert set(lost(plan_of('[api]\npublish_address = "0.0.0.0"\n'))) == {"CIS 5.14"}
    assert lost(plan_of('[api]\npublish_address = "192.0.2.7"\n')) == {}


def test_a_page_for_people_and_the_same_for_programs() -> None:
    """Reason, value, control and cause stand on the page; the JSON is the report."""
    plan = with_delta(
        cap_add=("NET_ADMIN",),
        volumes=(VolumePlan(source="/srv/a|b", target="/x", read_only=True),),
    )
    page = security_report(plan, project=Path("/home/me"))
    assert "### desktop\n\nthe display server needs it" in page
    assert "| cap_add | NET_ADMIN | CIS 5.4: adds NET_ADMIN; PSS Capabilities (baseline):" in page
    assert (
        "| volumes | /srv/a\\|b at /x (read-only) | PSS HostPath Volumes (baseline): volume" in page
    )
    assert "`/home/me` of this host" in page
    assert "level **privileged**" in page
    assert json.loads(report_json(plan)) == report(plan)
    assert "None: the baseline holds." in security_report(PLAN)


def test_devices_that_no_cluster_grants_are_reported_all_the_same() -> None:
    """The report does not fail where a pod could not be rendered."""
    plan = with_delta(devices=("/dev/fuse",), group_add=("unheard-of",))
    assert PlanAssessment(plan).level == RESTRICTED
    assert set(lost(plan)) == {"CIS 5.18"}

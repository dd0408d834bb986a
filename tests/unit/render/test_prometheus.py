"""prometheus: promtool accepts what is rendered, and its rule tests show each alert firing and silent."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from support.plans import plan_of

from agentbox.plan.render.prometheus import (
    ALERTS,
    CONFIG_FILE,
    RULES_FILE,
    prometheus,
    scrape_target,
)

PLAN = plan_of()
MANIFESTS = {
    "default": "",
    "other values": '[observability]\nmetrics_port = 8001\npublish_address = "::1"\n',
    "every address": '[observability]\npublish_address = "0.0.0.0"\n',
}


@dataclass(frozen=True)
class Case:
    """Series with their values, a minute apart, of which the first lot raises the alert and the second does not."""

    fires: dict[str, str]
    quiet: dict[str, str]
    labels: dict[str, str]  # that the alert has besides box, job and severity
    summary: str


_STARTS, _JOURNAL = 'agentbox_program_starts_total{program="gateway"}', "agentbox_journal_"
_DENIED = 'agentbox_denied_total{agent="builder",class="policy",layer="proxy",rule="net connect"}'
_BENIGN = 'agentbox_denied_total{agent="builder",class="benign",layer="reaper",rule="socket"}'
_ATTACK = 'agentbox_denied_total{agent="builder",class="attack",layer="reaper",rule="ptrace"}'
_HEALTH = 'agentbox_adapter_health{slot="pods",impl="local-fs"}'
_HEALTH_OFF = 'agentbox_adapter_health{slot="pods",impl="off"}'
_FAILED = 'agentbox_backup_failures_total{reason="unusable"}'
_LOGINS = "agentbox_logins_total{outcome="
_MONEY = 'agentbox_model_budget_cost_micros{agent="builder",'
CASES = {
    "AgentboxDown": Case({"up": "0x20"}, {"up": "1x20"}, {}, "agentbox does not answer scrapes"),
    "AgentboxNotReady": Case(
        {"agentbox_ready": "1x5 0x20"}, {"agentbox_ready": "1x5 0x1 1x20"}, {}, "agentbox is not ready"
    ),
    "AgentboxReadinessFlaps": Case(
        {'agentbox_ready_transitions_total{to="unready"}': "0+1x20"},
        {'agentbox_ready_transitions_total{to="unready"}': "0x10 1x10"},
        {"to": "unready"},
        "agentbox lost readiness more than three times in 15 minutes",
    ),
    "AgentboxPreviousBootUnclean": Case(
        {"agentbox_boot_previous_unclean": "1x20"},
        {"agentbox_boot_previous_unclean": "0x20"},
        {},
        "agentbox was not shut down cleanly before this boot",
    ),
    "AgentboxProgramRestarts": Case(
        {_STARTS: "1+1x20"}, {_STARTS: "1x10 2x10"}, {"program": "gateway"},
        "gateway of agentbox restarted more than three times in 15 minutes",
    ),
    "AgentboxSlotDegraded": Case(
        {_HEALTH: "2x20"}, {_HEALTH: "2x3 1x17", _HEALTH_OFF: "2x20"}, {"slot": "pods", "impl": "local-fs"},
        "slot pods of agentbox is down or served by its off class",
    ),
    "AgentboxDenials": Case(
        {_DENIED: "0+5x20"}, {_DENIED: "0+1x20", _BENIGN: "0+50x20", _ATTACK: "0+50x20"}, {"agent": "builder", "layer": "proxy", "rule": "net connect"},
        "agent builder of agentbox was refused more than ten times in 10 minutes (net connect)",
    ),
    "AgentboxAttack": Case(
        {_ATTACK: "_x17 1x3"}, {_ATTACK: "1x20", _DENIED: "0+50x20", _BENIGN: "0+50x20"},
        {"agent": "builder", "layer": "reaper", "rule": "ptrace"},
        "agent builder of agentbox made a request that only an attack makes (ptrace)",
    ),
    "AgentboxJournalNearMax": Case(
        {_JOURNAL + "bytes": "85x20", _JOURNAL + "max_bytes": "100x20"},
        {_JOURNAL + "bytes": "79x20", _JOURNAL + "max_bytes": "100x20"},
        {},
        "the journal of agentbox is 85% full",
    ),
    "AgentboxEventsUndelivered": Case(
        {"agentbox_events_oldest_undelivered_seconds": "400x20"},
        {"agentbox_events_oldest_undelivered_seconds": "200x20"},
        {},
        "the sink of agentbox has had no event for 6m 40s",
    ),
    "AgentboxJournalLost": Case(
        {'agentbox_journal_lost_total{reason="slot-unavailable"}': "0x17 1x3"},
        {'agentbox_journal_lost_total{reason="slot-unavailable"}': "3x20"},
        {"reason": "slot-unavailable"},
        "agentbox could not append an event to its journal (slot-unavailable)",
    ),
    "AgentboxRedactionFailures": Case(
        {'agentbox_redaction_failures_total{slot="memory",policy="strict"}': "0x17 2x3"},
        {'agentbox_redaction_failures_total{slot="memory",policy="strict"}': "2x20"},
        {"slot": "memory", "policy": "strict"},
        "agentbox could not search a text for secrets (slot memory)",
    ),
    "AgentboxBudgetLow": Case(
        {_MONEY + 'state="used"}': "19x20", _MONEY + 'state="left"}': "1x20"},
        {_MONEY + 'state="used"}': "18x20", _MONEY + 'state="left"}': "2x20"},
        {"agent": "builder"},
        "agent builder of agentbox has 5% of its money left",
    ),
    "AgentboxLoginFailures": Case(
        {_LOGINS + '"refused"}': "0+1x20", _LOGINS + '"rate-limited"}': "0+1x20"},
        {_LOGINS + '"refused"}': "0+1x20", _LOGINS + '"ok"}': "0+50x20"},
        {},
        "more than ten sign-ins at agentbox failed within 10 minutes",
    ),
    "AgentboxBackupDamaged": Case(
        {"agentbox_backup_damaged_snapshots": "0x17 2x3"},
        {"agentbox_backup_damaged_snapshots": "2x10 0x10"},
        {},
        "backups of agentbox are damaged: 2",
    ),
    "AgentboxBackupFailed": Case(
        {_FAILED: "_x17 1x3"}, {_FAILED: "1x20"}, {"reason": "unusable"},
        "a backup of agentbox failed within 15 minutes (unusable)",
    ),
    "AgentboxBackupStale": Case(
        {"agentbox_backup_overdue_seconds": "3600+60x20"},
        {"agentbox_backup_overdue_seconds": "3600x20"},
        {},
        "agentbox has had no backup for 1h 19m 0s since one was due",
    ),
    "AgentboxPostureDrift": Case(
        {'agentbox_posture_drift{control="seccomp"}': "1x20"},
        {'agentbox_posture_drift{control="seccomp"}': "0x20"},
        {"control": "seccomp"},
        "agentbox is not confined as planned: seccomp",
    ),
    "AgentboxOtherPlan": Case(
        {'agentbox_build_info{plan_digest="sha256:other"}': "1x20"},
        {f'agentbox_build_info{{plan_digest="{PLAN.digest}"}}': "1x20"},
        {"plan_digest": "sha256:other"},
        "agentbox runs a different plan than these rules",
    ),
}  # fmt: skip


def _promtool(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["promtool", *words], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _write(folder: Path, text: str = "") -> Path:
    for name, content in prometheus(plan_of(text)).items():
        (folder / name).write_text(content)
    return folder


@pytest.mark.parametrize("text", MANIFESTS.values(), ids=MANIFESTS.keys())
def test_promtool_accepts_configuration_and_rules(tmp_path: Path, text: str) -> None:
    """Every rule is counted; a broken expression is rejected, so the validator does check."""
    _write(tmp_path, text)
    assert f"{len(ALERTS)} rules found" in _promtool(tmp_path, "check", "config", CONFIG_FILE)
    rules = tmp_path / RULES_FILE
    rules.write_text(rules.read_text().replace("agentbox_ready{", "agentbox_ready{{"))
    done = subprocess.run(
        ["promtool", "check", "rules", RULES_FILE], cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode != 0


def test_every_alert_has_a_case() -> None:
    """An alert that never fired in a test may not work."""
    assert [alert.name for alert in ALERTS] == list(CASES)


@pytest.mark.parametrize("name", CASES)
def test_an_alert_fires_when_it_must_and_not_when_it_need_not(tmp_path: Path, name: str) -> None:
    """By `promtool test rules` over twenty minutes of samples; labels and summary are what the operator reads."""
    case, alert = CASES[name], next(alert for alert in ALERTS if alert.name == name)
    keeps_job = name not in (
        "AgentboxDenials",
        "AgentboxAttack",
    )  # it sums over what identifies a denial
    labels = {
        "box": "agentbox",
        **({"job": "agentbox"} if keeps_job else {}),
        "severity": alert.severity,
        **case.labels,
    }
    remedy = alert.remedy.replace("{{ $labels.program }}", case.labels.get("program", ""))
    fired = {"exp_labels": labels, "exp_annotations": {"summary": case.summary, "remedy": remedy}}
    tests = [_test(name, case.fires, [fired]), _test(name, case.quiet, [])]
    _write(tmp_path)
    (tmp_path / "test.yml").write_text(yaml.safe_dump({"rule_files": [RULES_FILE], "tests": tests}))
    assert "SUCCESS" in _promtool(tmp_path, "test", "rules", "test.yml")


def _test(
    name: str, series: dict[str, str], expected: list[dict[str, object]]
) -> dict[str, object]:
    rows = [
        {"series": _scraped(series_name), "values": values}
        for series_name, values in series.items()
    ]
    check = {"eval_time": "19m", "alertname": name, "exp_alerts": expected}
    return {"interval": "1m", "input_series": rows, "alert_rule_test": [check]}


def _scraped(series: str) -> str:
    """With the labels that the scrape job adds."""
    name, _, labels = series.partition("{")
    return f'{name}{{job="agentbox",box="agentbox"{"," if labels else ""}{labels or "}"}'


def test_the_job_scrapes_where_the_box_publishes() -> None:
    """Loopback for a box that listens on every address; an IPv6 literal in brackets."""
    assert scrape_target(plan_of()) == "127.0.0.1:9091"
    assert scrape_target(plan_of(MANIFESTS["other values"])) == "[::1]:8001"
    assert scrape_target(plan_of(MANIFESTS["every address"])) == "127.0.0.1:9091"

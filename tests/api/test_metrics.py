"""What a scraper gets."""

import subprocess

import httpx
import pytest
from helpers import sh, until
from support.api_box import ApiBox

from agentbox.client import ApiError, BoxClient

NAMES = (
    "agentbox_build_info", "agentbox_ready", "agentbox_requirement", "agentbox_ready_transitions_total",
    "agentbox_boot_previous_unclean", "agentbox_adapter_health", "agentbox_adapter_state",
    "agentbox_adapter_transitions_total", "agentbox_adapter_open_total", "agentbox_adapter_dispatch_total",
    "agentbox_adapter_duration_seconds_bucket", "http_requests_total", "http_request_duration_seconds_bucket",
    "process_resident_memory_bytes",
)  # fmt: skip
DECLARED = (
    *("agentbox_boot_seconds", "agentbox_program_starts_total", "agentbox_denied_total"),
    *("agentbox_limit_breached_total", "agentbox_limit_warning_total", "agentbox_mcp_drift"),
    *(
        "agentbox_model_calls_total",
        "agentbox_model_tokens_total",
        "agentbox_model_budget_tokens",
        "agentbox_model_budget_cost_micros",
        "agentbox_llm_cost_micros_total",
        "agentbox_model_queue_depth",
    ),
)


def scrape(box: ApiBox, accept: str = "*/*") -> httpx.Response:
    return httpx.get(f"{box.metrics_url}/metrics", headers={"Accept": accept}, trust_env=False)


def test_every_metric_of_the_table_is_there(box: ApiBox, client: BoxClient) -> None:
    """With samples, or declared where nothing has happened yet."""
    client.submit_task(sh("exit 0"))
    client.call("list_beads")
    text = until(lambda: _with(scrape(box).text, "agentbox_requirement{"))
    samples = {
        line.split("{")[0].split(" ")[0] for line in text.splitlines() if not line.startswith("#")
    }
    assert set(NAMES) <= samples
    assert all(f"# TYPE {name} " in text for name in DECLARED)


def test_promtool_accepts_it(box: ApiBox) -> None:
    """`promtool check metrics` reports nothing."""
    done = subprocess.run(
        ["promtool", "check", "metrics"],
        input=scrape(box).content,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout.decode(), done.stderr.decode()) == (0, "", "")


def test_both_formats_are_served(box: ApiBox) -> None:
    """Text 0.0.4 by default, OpenMetrics if Accept requests it."""
    assert scrape(box).headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    wanted = "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"
    answer = scrape(box, wanted)
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")


def test_labels_come_from_closed_sets(box: ApiBox) -> None:
    """A hundred invented paths and methods make one series, not a hundred."""
    for number in range(100):
        httpx.request("PROPFIND", f"{box.url}/invented/{number}", trust_env=False)
    lines = [
        line for line in scrape(box).text.splitlines() if line.startswith("http_requests_total")
    ]
    assert [line for line in lines if "invented" in line] == []
    assert (
        len([line for line in lines if 'route="unmatched"' in line and 'method="other"' in line])
        == 1
    )


def _with(text: str, part: str) -> str:
    return text if part in text else ""


def test_a_refusal_is_in_the_metrics_the_agent_and_the_journal(
    box: ApiBox, client: BoxClient
) -> None:
    """A start that its profile forbids: within seconds a series of its own, by the requested name,
    and an event."""
    with pytest.raises(ApiError):
        client.agents.spawn({"name": "refused", "argv": ["true"], "profile": "none-such"})
    row = 'agentbox_denied_total{agent="refused",class="policy",layer="spawn",rule="profile"} 1.0'
    until(lambda: _with(scrape(box).text, row))
    found = until(lambda: client.call("read_events", query={"types": "policy.denied"})["events"])
    assert (found[0]["data"]["name"], found[0]["data"]["rule"]) == ("refused", "profile")

"""Stored accounts of traffic: damaged ones, and those of another day."""

from pathlib import Path

from agentbox.gateway.proxy.traffic_ledger import TrafficLedger


def test_a_damaged_account_counts_from_nothing(tmp_path: Path) -> None:
    """And the next is stored as usual."""
    file = tmp_path / "egress.json"
    for damaged in ("", "{", "[]", '{"a": 1}', '{"a": {"x": 1}}'):
        file.write_text(damaged)
        spent = TrafficLedger(file)
        spent.add("one", 5)
        spent.save()
        assert TrafficLedger(file).total("one") == 5


def test_bytes_of_yesterday_count_no_more(tmp_path: Path) -> None:
    """24 hours, by the hour."""
    now = [1_000_000_000.0]
    spent = TrafficLedger(tmp_path / "egress.json", lambda: now[0])
    spent.add("one", 5)
    now[0] += 23 * 3600
    spent.add("one", 7)
    assert spent.total("one") == 12
    now[0] += 3600
    assert spent.total("one") == 7
    spent.save()
    now[0] += 24 * 3600
    assert TrafficLedger(tmp_path / "egress.json", lambda: now[0]).total("one") == 0

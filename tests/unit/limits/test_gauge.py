"""One warning per crossing, peaks stay."""

from agentbox.policy.limits.gauge import Breach, Gauge


def test_warns_once_and_arms_again_below_half() -> None:
    """80 % warns; staying above half warns no more; below half the next crossing warns again."""
    gauge = Gauge("memory", 100)
    told = [
        gauge.observe(value) is not None for value in (79, 80, 95, 60, 85, 50, 90, 49, 79, 81, 99)
    ]
    assert told == [False, True, False, False, False, False, False, False, False, True, False]
    assert gauge.peak == 99


def test_without_a_cap_only_the_peak_is_kept() -> None:
    """Nothing warns, whatever is observed."""
    gauge = Gauge("memory", 0)
    assert [gauge.observe(value) for value in (10, 10**12, 5)] == [None, None, None]
    assert gauge.peak == 10**12


def test_a_breach_names_its_key() -> None:
    """The same four members as error, event and item."""
    found = Breach(limit="max_agents", observed=101, cap=100).to_json()
    assert found == {
        "limit": "max_agents", "observed": 101, "cap": 100, "config_path": "adapters.orchestrator.max_agents",
    }  # fmt: skip

"""The text of the metrics stays bounded and correct."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.parser import text_string_to_metric_families

from agentbox.api.metrics.exposition import MAX_SERIES, expose
from agentbox.api.metrics.http_metrics import BUCKETS, HttpMetrics


def families(registry: CollectorRegistry) -> dict[str, list[object]]:
    text, _ = expose(registry, "")
    return {family.name: family.samples for family in text_string_to_metric_families(text.decode())}


def test_a_family_keeps_two_hundred_series() -> None:
    """Series beyond the limit are added up as `other`: the sum over all labels is unchanged."""
    registry = CollectorRegistry()
    counter = Counter("things", "x", ("name",), registry=registry)
    for number in range(MAX_SERIES + 50):
        counter.labels(f"n{number:04}").inc(2)
    samples = [sample for sample in families(registry)["things"] if sample.name == "things_total"]
    assert len(samples) == MAX_SERIES + 1
    assert sum(sample.value for sample in samples) == 2 * (MAX_SERIES + 50)
    assert any(sample.labels == {"name": "other"} for sample in samples)


def test_histograms_are_folded_bucket_by_bucket() -> None:
    """`le` stays, so the folded series is still a histogram."""
    registry = CollectorRegistry()
    histogram = Histogram("spans", "x", ("name",), buckets=(1, 2), registry=registry)
    for number in range(MAX_SERIES + 3):
        histogram.labels(f"n{number:04}").observe(1.5)
    other = [
        sample for sample in families(registry)["spans"] if sample.labels.get("name") == "other"
    ]
    assert {sample.labels["le"]: sample.value for sample in other if "le" in sample.labels} == {
        "1.0": 0, "2.0": 3, "+Inf": 3,
    }  # fmt: skip


def test_small_families_are_untouched() -> None:
    """Nothing is called `other` that was not folded."""
    registry = CollectorRegistry()
    Gauge("one", "x", ("name",), registry=registry).labels("a").set(1)
    assert [sample.labels for sample in families(registry)["one"]] == [{"name": "a"}]


def test_requests_are_counted_by_closed_labels() -> None:
    """An unknown method is `other`; durations fall into their buckets; a stream has none."""
    registry, http = CollectorRegistry(), HttpMetrics()
    registry.register(http)
    http.count("/livez", "GET", 200, 0.0004)
    http.count("/livez", "GET", 200, 99.0)
    http.count("/livez", "FETCH", 405, 0.0004)
    http.count("/v1/events/stream", "GET", 200, -1)
    found = families(registry)
    counted = {
        (s.labels["route"], s.labels["method"], s.labels["status"]): s.value
        for s in found["http_requests"]
    }
    assert counted == {
        ("/livez", "GET", "200"): 2, ("/livez", "other", "405"): 1, ("/v1/events/stream", "GET", "200"): 1,
    }  # fmt: skip
    buckets = {
        s.labels["le"]: s.value
        for s in found["http_request_duration_seconds"]
        if s.name.endswith("_bucket")
    }
    assert (buckets[str(BUCKETS[0])], buckets["10.0"], buckets["+Inf"]) == (2, 2, 3)
    assert not any(
        s.labels.get("route") == "/v1/events/stream" for s in found["http_request_duration_seconds"]
    )

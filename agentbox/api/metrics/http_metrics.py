"""Counts of HTTP requests, as plain numbers of one thread, so that counting needs no lock.

Label values come from closed sets: the route's template or `unmatched`, a known method or `other`,
the status.
"""

from bisect import bisect_left
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
UNMATCHED = "unmatched"


class HttpMetrics(Collector):
    """`http_requests_total` and `http_request_duration_seconds`. Only the event loop's thread may
    call `count`.
    """

    def __init__(self) -> None:
        self._requests: dict[tuple[str, str, str], int] = {}
        self._buckets: dict[str, list[int]] = {}
        self._seconds: dict[str, float] = {}

    def count(self, route: str, method: str, status: int, seconds: float) -> None:
        """Counts one request. A stream counts when it ends, and not in the durations."""
        key = (route, method if method in METHODS else "other", str(status))
        self._requests[key] = self._requests.get(key, 0) + 1
        if seconds < 0:
            return
        buckets = self._buckets.setdefault(route, [0] * (len(BUCKETS) + 1))
        buckets[bisect_left(BUCKETS, seconds)] += 1
        self._seconds[route] = self._seconds.get(route, 0.0) + seconds

    def collect(self) -> Iterator[Metric]:
        """The two families for prometheus_client."""
        requests = CounterMetricFamily(
            "http_requests", "HTTP requests answered", labels=("route", "method", "status")
        )
        for key, number in sorted(self._requests.items()):
            requests.add_metric(key, number)
        yield requests
        duration = HistogramMetricFamily(
            "http_request_duration_seconds", "Time to answer", labels=("route",)
        )
        for route, counts in sorted(self._buckets.items()):
            duration.add_metric((route,), _cumulative(counts), self._seconds[route])
        yield duration


def _cumulative(counts: list[int]) -> list[tuple[str, float]]:
    total, rows = 0, []
    for bound, number in zip((*map(str, BUCKETS), "+Inf"), counts, strict=True):
        total += number
        rows.append((bound, float(total)))
    return rows

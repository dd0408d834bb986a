"""The text that a scraper reads: Prometheus 0.0.4, or OpenMetrics by Accept, with a bound on series a family."""

from collections.abc import Iterator

import structlog
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.exposition import generate_latest as prometheus_text
from prometheus_client.openmetrics.exposition import generate_latest as openmetrics_text
from prometheus_client.samples import Sample

MAX_SERIES = 200
OTHER = "other"
TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_log = structlog.get_logger()
_warned: set[str] = set()


def expose(registry: CollectorRegistry, accept: str) -> tuple[bytes, str]:
    """The text and its media type."""
    bounded = _Bounded(registry)
    if "application/openmetrics-text" in accept:
        return openmetrics_text(bounded), OPENMETRICS  # type: ignore[no-untyped-call]
    return prometheus_text(bounded), TEXT


class _Bounded:
    """A registry whose families have at most MAX_SERIES series: what is over is added up under `other`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        for family in self._registry.collect():
            yield bounded(family)


def bounded(family: Metric) -> Metric:
    """The family itself where it is small enough; else one whose later series are summed up as `other`."""
    kept: set[tuple[str, ...]] = set()
    samples: dict[tuple[str, tuple[tuple[str, str], ...]], Sample] = {}
    over = False
    for sample in family.samples:
        key = tuple(value for name, value in sorted(sample.labels.items()) if name != "le")
        if key not in kept and len(kept) >= MAX_SERIES:
            over = True
            sample = _as_other(sample)
        else:
            kept.add(key)
        at = (sample.name, tuple(sorted(sample.labels.items())))
        samples[at] = _added(samples[at], sample) if at in samples else sample
    if not over:
        return family
    if family.name not in _warned:
        _warned.add(family.name)
        _log.warning("metric has too many series", family=family.name, kept=MAX_SERIES)
    folded = Metric(family.name, family.documentation, family.type, family.unit)
    folded.samples = list(samples.values())
    return folded


def _as_other(sample: Sample) -> Sample:
    return sample._replace(labels={name: value if name == "le" else OTHER for name, value in sample.labels.items()})


def _added(one: Sample, two: Sample) -> Sample:
    return one._replace(value=one.value + two.value)

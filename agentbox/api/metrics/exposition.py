"""The text for a scraper: Prometheus 0.0.4, or OpenMetrics by Accept, with a limit on series per
family.
"""

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
    limited = _LimitedRegistry(registry)
    if "application/openmetrics-text" in accept:
        return openmetrics_text(limited), OPENMETRICS  # type: ignore[no-untyped-call]
    return prometheus_text(limited), TEXT


class _LimitedRegistry:
    """A registry whose families have at most MAX_SERIES series: further ones are summed as
    `other`.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        for family in self._registry.collect():
            yield limit_series(family)


def limit_series(family: Metric) -> Metric:
    """The family itself if it is small enough; else one whose later series are summed as
    `other`.
    """
    label_sets: set[tuple[str, ...]] = set()
    samples: dict[tuple[str, tuple[tuple[str, str], ...]], Sample] = {}
    overflow = False
    for sample in family.samples:
        key = tuple(value for name, value in sorted(sample.labels.items()) if name != "le")
        if key not in label_sets and len(label_sets) >= MAX_SERIES:
            overflow = True
            sample = _relabel_other(sample)
        else:
            label_sets.add(key)
        sample_key = (sample.name, tuple(sorted(sample.labels.items())))
        samples[sample_key] = (
            _add_samples(samples[sample_key], sample) if sample_key in samples else sample
        )
    if not overflow:
        return family
    if family.name not in _warned:
        _warned.add(family.name)
        _log.warning("metric has too many series", family=family.name, kept=MAX_SERIES)
    folded = Metric(family.name, family.documentation, family.type, family.unit)
    folded.samples = list(samples.values())
    return folded


def _relabel_other(sample: Sample) -> Sample:
    return sample._replace(
        labels={name: value if name == "le" else OTHER for name, value in sample.labels.items()}
    )


def _add_samples(first: Sample, second: Sample) -> Sample:
    return first._replace(value=first.value + second.value)

"""The part of docs/features.md about real runs: the table, failures, and features that were not
run, with the reason.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from agentbox.manifest.features.model import Feature
from agentbox.manifest.features.supported_choices import AVAILABLE

Rows = Mapping[str, Mapping[str, Any]]
_INTRO: Final = """## Results of real runs

`./agentbox.sh test features --all` locks each feature, builds its image, boots it in a container,
runs its probes there like `agentbox verify --probes`, looks up its commands as an agent would, and
removes everything again. A device that the machine lacks is left out of the exception, so that
everything else is tested. Raw rows: `bench/results/features.json`. Size is what the feature and its
dependencies add to the core image: compressed, and unpacked.
"""
_HEAD: Final = """| Feature | Locks | Builds | Boots | Probes green | Size added | Exception |
|---|---|---|---|---|---|---|"""


def run_section(features: Mapping[str, Feature], rows: Rows) -> Iterator[str]:
    """Yield the lines of the section. `features` are the optional ones, `rows` those of
    bench/results/features.json by name.
    """
    yield _INTRO
    locked = {name: rows[name] for name in features if name in rows and rows[name]["locks"]}
    if locked:
        yield f"{_summary(locked)}\n"
    yield _HEAD
    yield from (_feature_row(name, rows.get(name)) for name in features)
    yield ""
    yield from _listed(
        "Failed, and why:", {name: row["why"] for name, row in locked.items() if not _is_ok(row)}
    )
    yield from _listed(
        "Not run, or not completely, because:", dict(_not_run(features, rows, locked))
    )


def _summary(locked: Rows) -> str:
    seconds = sum(sum(row["seconds"].values()) for row in locked.values())
    days = sorted(row["at"][:10] for row in locked.values())
    period = days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
    machines = ", ".join(sorted({row["machine"] for row in locked.values()}))
    needs = {name: row["needs"] for name, row in locked.items() if row.get("needs")}
    largest = max(needs, key=lambda name: needs[name], default="")
    disk = f" {largest} needs the most free disk: {needs[largest] / 1e9:.1f} GB." if largest else ""
    return (
        f"Run {period} on {machines}: {len(locked)} features in {seconds / 60:.0f} minutes.{disk}"
    )


def _feature_row(name: str, row: Mapping[str, Any] | None) -> str:
    if row is None or not row["locks"]:
        return f"| {name} | not run | | | | | |"
    green = (
        f"{sum(probe['passed'] for probe in row['probes'])} of {len(row['probes'])}"
        if row["probes"]
        else "no"
    )
    unpacked = _megabytes(row["unpacked"]) if row["boots"] else "?"
    size = f"{_megabytes(row['compressed'])}, {unpacked}" if row["builds"] else ""
    cells = ("yes" if row[key] else "no" for key in ("locks", "builds", "boots"))
    return f"| {name} | {' | '.join(cells)} | {green} | {size} | {', '.join(row['exceptions'])} |"


def _megabytes(sizes: Mapping[str, int]) -> str:
    return f"{sum(sizes.values()) / 1e6:.0f} MB"


def _is_ok(row: Mapping[str, Any]) -> bool:
    return bool(row["green"] or row.get("without") or row.get("short"))


def _not_run(
    features: Mapping[str, Feature], rows: Rows, locked: Rows
) -> Iterator[tuple[str, str]]:
    """Yield rows by feature, then general ones."""
    for name in features:
        row = rows.get(name)
        if row is None:
            yield name, "no result is stored"
        elif not row["locks"] or row.get("short"):
            yield name, row["why"]
        elif row.get("without"):
            yield (
                name,
                (
                    f"started without the {' and the '.join(row['without'])}, which this machine "
                    f"lacks. {row['why']}"
                ),
            )
    machines = {f"{row['machine']}-linux" for row in locked.values()}
    for system in sorted(
        {system for feature in features.values() for system in feature.systems} - machines
    ):
        locked_count = sum(system in features[name].systems for name in locked)
        yield (
            system,
            (
                f"{locked_count} of the tested features were locked for it; no machine of that "
                "kind has built or started one"
            ),
        )
    served = AVAILABLE["image.source"]
    for source in sorted(
        {source for feature in features.values() for source in feature.sources} - set(served)
    ):
        feature_count = sum(source in feature.sources for feature in features.values())
        yield (
            f"the package source {source}",
            (
                f"{feature_count} features have packages for it; this release builds from "
                f"{' and '.join(served)}"
            ),
        )


def _listed(title: str, rows: Mapping[str, str]) -> Iterator[str]:
    if rows:
        yield f"{title}\n"
        yield from (f"- **{name}**: {' '.join(reason.split())}" for name, reason in rows.items())
        yield ""

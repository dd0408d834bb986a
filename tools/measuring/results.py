"""Measures that need a run: taken from `bench/results` and `tests/durations.json`."""

import json
from typing import Any, Final

from measuring.sources import ROOT

_RESULTS: Final = ROOT / "bench/results"
_DURATIONS: Final = ROOT / "tests/durations.json"
ABSENT: Final = "no run is stored"


def claim(bench: str, name: str, *percentiles: str) -> Any:
    """Percentiles of one claim, in its unit; ABSENT where no run has it."""
    path = _RESULTS / f"{bench}.json"
    rows = json.loads(path.read_text(encoding="utf-8"))["claims"] if path.is_file() else []
    row = next((one for one in rows if one["name"] == name), None)
    return (
        ABSENT if row is None else {f"{at} {row['unit']}": round(row[at], 3) for at in percentiles}
    )


def suite() -> Any:
    """Minutes of work of the default run, all files one after another."""
    if not _DURATIONS.is_file():
        return ABSENT
    found = json.loads(_DURATIONS.read_text(encoding="utf-8"))
    return {"minutes of work": round(sum(_seconds(found)) / 60, 1)}


def _seconds(found: Any) -> list[float]:
    if isinstance(found, dict):
        return [seconds for value in found.values() for seconds in _seconds(value)]
    return [float(found)] if isinstance(found, int | float) else []

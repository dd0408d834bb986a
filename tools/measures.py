"""The measures of the code's structure, on the tree as it is: a table, or JSON with `--json`.

Beside each stands what it was before the redesign (`bench/results/structure_before.json`) and its
target. What needs a run is taken from the results of one; what only a reader can count (the files
that a change touches) is in no row. Test code in the package is counted for itself, so that its
leaving makes no other figure better.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from measuring import admission, imports, parts, results, sizes, sources, words

BEFORE: Final = Path(__file__).parents[1] / "bench/results/structure_before.json"


class Row(NamedTuple):
    """One measure. `value` is a number, or several by name."""

    measure: str
    value: Any
    target: str


def rows() -> Iterator[Row]:
    """All of them, in the order of the table."""
    yield from _structure()
    yield from _parts()
    yield from _runs()


def _structure() -> Iterator[Row]:
    everything, modules = sources.modules(), sources.product()
    found = imports.cycles(everything)
    copies = {**sizes.class_names(modules), "function bodies": sizes.bodies(modules)}
    files = ", ".join(str(len(group)) for group in found)
    yield Row(
        "top-level entries of agentbox/",
        len(sizes.entries(everything)),
        "14, beside __init__ and __main__",
    )
    yield Row(
        "largest packages",
        {name: count for count, name in sizes.packages(everything)[:3]},
        "20 at most",
    )
    yield Row(
        "import cycles, and files of each",
        {"cycles": len(found), "files": files},
        "0",
    )
    test_code = sizes.lines(everything) - sizes.lines(modules)
    yield Row("lines", sizes.lines(modules), "70,000 at most")
    yield Row("lines of test code in agentbox/", test_code, "0")
    yield Row("lines at 100 columns, nothing exempt", sizes.lines_at(100), "81,000 at most")
    yield Row("tokens without comments and docstrings", sizes.tokens(modules), "495,000 at most")
    yield Row("wide lines, lines exempt from formatting", sizes.widths(modules), "0; 20 at most")
    yield Row("duplicates", copies, "0 public names; 0 bodies")
    sentences = {
        f'texts with "{name}"': count for name, count in words.old_sentences(modules).items()
    }
    names = {
        "definitions": words.old_names(modules),
        "local variables": words.old_variables(modules),
    }
    yield Row("words of the old dialect", {**names, **sentences}, "0")


def _parts() -> Iterator[Row]:
    product = sources.product()
    http = parts.http(product)
    yield Row("fields of the plan with untyped members", len(parts.open_fields(product)), "0")
    yield Row(
        "files that define beads.heartbeat", len(parts.heartbeats(product)), "1, and one a store"
    )
    yield Row(
        "files that speak ASGI",
        {"files": len(http), "lines": sum(http.values())},
        "1,000 lines at most",
    )
    for name, generated, target in (
        ("client", False, "14 files, 1,200 lines at most"),
        ("client, generated", True, ""),
    ):
        client = parts.client(product, generated=generated)
        yield Row(name, {"files": len(client), "lines": sum(client.values())}, target)
    yield Row(
        "spawn spec through admission",
        admission.measure(admission.spawns()["child with a constraint"]),
        "14, 8, 0 at most",
    )
    yield Row(
        "lines of data in git outside agentbox/", sizes.data_lines(), "15,000 together at most"
    )


def _runs() -> Iterator[Row]:
    validate = results.claim(
        "validate", "python -m agentbox config validate, whole process", "p50", "p95"
    )
    yield Row("default suite", results.suite(), "25 minutes at most, on two cores")
    yield Row("config validate, whole process", validate, "not worse")
    yield Row(
        "start to ready",
        results.claim("start", "container start to /ready", "p50"),
        "1.15 s at most",
    )
    yield Row(
        "/livez under load",
        results.claim("livez", "livez under load", "p99"),
        "1.15 x before at most",
    )
    for name in ("create", "claim", "ready", "show"):
        found = results.claim("slots", f"beads external-http {name}", "p95")
        yield Row(f"beads over HTTP: {name}", found, "1.15 x before at most")
    yield Row(
        "agent spawn of /bin/true",
        results.claim("spawn", "agent spawn of /bin/true", "p50"),
        "not worse",
    )
    yield Row(
        "image, compressed", results.claim("footprint", "image, compressed", "p50"), "not larger"
    )
    memory = results.claim("footprint", "control plane idle, sum of PSS", "p50")
    yield Row("control plane, PSS", memory, "not larger")


def table(found: list[Row], before: dict[str, Any]) -> str:
    """For people."""
    lines = ["| Measure | Before | Now | Target |", "|---|---|---|---|"]
    for row in found:
        was = _text(before.get(row.measure, "-"))
        lines.append(f"| {row.measure} | {was} | {_text(row.value)} | {row.target} |")
    return "\n".join(lines)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{name}: {_text(one)}" for name, one in value.items())
    return f"{value:,}" if isinstance(value, int) else str(value)


def main(arguments: list[str]) -> int:
    """Prints them."""
    found = list(rows())
    if "--json" in arguments:
        call = ("git", "-C", str(sources.ROOT), "rev-parse", "HEAD")
        commit = subprocess.run(call, capture_output=True, text=True, check=True).stdout.strip()
        values = {row.measure: row.value for row in found}
        print(json.dumps({"commit": commit, "measures": values}, indent=1))
        return 0
    stored = (
        json.loads(BEFORE.read_text(encoding="utf-8")) if BEFORE.is_file() else {"measures": {}}
    )
    print(table(found, stored["measures"]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The table of the package `genai-prices`: downloaded by its hash, read, and never run.

Of prices that depend on the length of the input, on the time of the day or on how long a cache is
kept, the highest counts: a budget in money must not be exceeded.
"""

import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from datetime import date
from decimal import ROUND_UP, Decimal
from pathlib import Path
from typing import Any, Final

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.frozen import frozen
from agentbox.core.paths import CHECKOUT
from agentbox.host.packages.python.pip_failures import explain_failure
from agentbox.host.prices.literal_calls import read_calls

REQUIREMENTS: Final = CHECKOUT / "requirements.prices"
_DATA: Final = "genai_prices/data.py"
_VENDORS: Final = {"openai": "openai", "anthropic": "anthropic", "gemini": "google"}
_GLOB: Final = re.compile(r"[A-Za-z0-9._!:/@+-]{1,126}")
_SMALLEST: Final = Decimal("0.000001")


@frozen
class ListedPrice:
    """A pattern of models with its prices, as decimal text; "" = as `input`."""

    pattern: str
    input: str
    output: str
    cache_read: str
    cache_write: str


@frozen
class PriceTable:
    """`newest`: the date of the latest change that the table names, None if it names none."""

    version: str
    newest: date | None
    vendors: tuple[Mapping[str, Any], ...]

    def prices(self, kind: str, base_url: str, today: date) -> tuple[ListedPrice, ...] | None:
        """Those of the vendor with that protocol, or with that base URL unless it is "". None if
        the table does not know the endpoint."""
        vendor = next((row for row in self.vendors if _serves(row, kind, base_url)), None)
        if vendor is None:
            return None
        listed: dict[str, ListedPrice] = {}
        for model in vendor["models"]:
            for price in _listed(model, today):
                listed.setdefault(price.pattern, price)
        return tuple(listed.values())


def download(requirements: Path = REQUIREMENTS) -> PriceTable:
    """Downloads the package with pip, as it is configured on this host, and checks its hash. Raises
    AgentboxError (exit 4)."""
    with tempfile.TemporaryDirectory() as directory:
        command = [
            sys.executable,
            "-m",
            "pip",
            "--disable-pip-version-check",
            "download",
            "--no-deps",
            "--only-binary=:all:",
            "--require-hashes",
            "--dest",
            directory,
            "--requirement",
            str(requirements),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wheels = list(Path(directory).glob("*.whl"))
        if done.returncode or not wheels:
            cause, hint = explain_failure(done.stdout + done.stderr)
            raise AgentboxError(
                f"cannot download the table of prices: {cause}", hint, exit_code=ExitCode.FETCH
            )
        return read_wheel(wheels[0])


def read_wheel(wheel: Path) -> PriceTable:
    """Raises AgentboxError for a package of another form."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            source = archive.read(_DATA).decode()
        vendors = read_calls(source, "providers")
    except (KeyError, ValueError, SyntaxError, zipfile.BadZipFile) as error:
        raise AgentboxError(
            f"cannot read the table of prices in {wheel.name}: {error}",
            "Use the release of agentbox that this file came with.",
        ) from error
    dates = [_start(row) for row in _conditions(vendors)]
    return PriceTable(
        version=wheel.name.split("-")[1],
        newest=max((day for day in dates if day is not None and day <= date.today()), default=None),
        vendors=tuple(vendors),
    )


def _conditions(node: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(node, list):
        for item in node:
            yield from _conditions(item)
    elif isinstance(node, dict):
        if node.get("kind") == "ConditionalPrice":
            yield node
        for item in node.values():
            yield from _conditions(item)


def _serves(vendor: Mapping[str, Any], kind: str, base_url: str) -> bool:
    if not base_url:
        return bool(vendor["id"] == _VENDORS[kind])
    return re.match(vendor["api_pattern"], base_url) is not None


def _listed(model: Mapping[str, Any], today: date) -> Iterator[ListedPrice]:
    prices = _active(model["prices"], today)
    read = {
        name: _highest(prices, *fields)
        for name, fields in (
            ("input", ("input_mtok",)),
            ("output", ("output_mtok",)),
            ("cache_read", ("cache_read_mtok",)),
            ("cache_write", ("cache_write_mtok", "cache_write_1h_mtok")),
        )
    }
    if not read["input"]:
        return
    texts = {**read, "output": read["output"] or "0"}
    for pattern in dict.fromkeys(_patterns(model["match"])):
        yield ListedPrice(pattern=pattern, **texts)


def _active(prices: Any, today: date) -> list[Mapping[str, Any]]:
    """The prices in force: the last that has begun, and those of some hours of the day."""
    if isinstance(prices, dict):
        return [prices]
    begun, hours = [], []
    for row in prices:
        constraint = row.get("constraint")
        if constraint is None or ((start := _start(row)) is not None and start <= today):
            begun.append(row["prices"])
        elif constraint["kind"] != "StartDateConstraint":
            hours.append(row["prices"])
    return [*begun[-1:], *hours]


def _start(row: Mapping[str, Any]) -> date | None:
    constraint = row.get("constraint")
    if constraint is None or constraint["kind"] != "StartDateConstraint":
        return None
    start: date = constraint["start_date"]
    return start


def _highest(prices: list[Mapping[str, Any]], *names: str) -> str:
    values: list[Decimal] = []
    for price in prices:
        for name in names:
            match price.get(name):
                case Decimal() as value:
                    values.append(value)
                case {"base": Decimal() as base, "tiers": tiers}:
                    values += [base, *(tier["price"] for tier in tiers)]
    if not values:
        return ""
    rounded = max(values).quantize(_SMALLEST, ROUND_UP)
    return f"{rounded:f}".rstrip("0").rstrip(".")


def _patterns(clause: Mapping[str, Any]) -> Iterator[str]:
    """Patterns of [providers.<name>.prices]; none for clauses that they cannot express."""
    match clause:
        case {"kind": "ClauseOr", "or_": clauses}:
            for item in clauses:
                yield from _patterns(item)
        case {"kind": "ClauseEquals", "equals": str(text)} if _GLOB.fullmatch(text):
            yield text
        case {"kind": "ClauseStartsWith", "starts_with": str(text)} if _GLOB.fullmatch(text):
            yield f"{text}*"
        case {"kind": "ClauseEndsWith", "ends_with": str(text)} if _GLOB.fullmatch(text):
            yield f"*{text}"
        case {"kind": "ClauseContains", "contains": str(text)} if _GLOB.fullmatch(text):
            yield f"*{text}*"

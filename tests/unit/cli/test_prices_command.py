"""`agentbox prices update`: the table is read and never run, and the manifest keeps what its owner
wrote."""

import subprocess
import sys
import tomllib
import zipfile
from datetime import date
from pathlib import Path

import pytest

from agentbox.core.errors import AgentboxError
from agentbox.core.paths import CHECKOUT, environment
from agentbox.host.prices.manifest_block import with_block, without_block
from agentbox.host.prices.table import PriceTable, read_wheel
from agentbox.manifest.load import parse

DATA = """
from .types import *
providers: list[Provider] = [
    Provider(
        id='openai',
        api_pattern='https://api\\\\.openai\\\\.com',
        models=[
            ModelInfo(
                id='big',
                match=ClauseOr(or_=[ClauseEquals(equals='big'), ClauseStartsWith(starts_with='big-')]),
                prices=[
                    ConditionalPrice(prices=ModelPrice(input_mtok=Decimal('9'), output_mtok=Decimal('9'))),
                    ConditionalPrice(
                        constraint=StartDateConstraint(start_date=datetime.date(2026, 1, 2)),
                        prices=ModelPrice(
                            input_mtok=TieredPrices(base=Decimal('1.5'), tiers=[Tier(start=200000, price=Decimal('3'))]),
                            cache_read_mtok=Decimal('0.12345678'),
                            cache_write_mtok=Decimal('2'),
                            cache_write_1h_mtok=Decimal('4'),
                            output_mtok=Decimal('10'),
                        ),
                    ),
                    ConditionalPrice(
                        constraint=StartDateConstraint(start_date=datetime.date(2099, 1, 1)),
                        prices=ModelPrice(input_mtok=Decimal('99'), output_mtok=Decimal('99')),
                    ),
                ],
            ),
            ModelInfo(id='odd', match=ClauseRegex(regex='^o.d$'), prices=ModelPrice(input_mtok=Decimal('1'))),
            ModelInfo(id='embed', match=ClauseContains(contains='embed'), prices=ModelPrice(input_mtok=Decimal('0.1'))),
        ],
    ),
]
"""
MANIFEST = """# mine
[meta]
schema_version = 1
[providers.openai]
enabled = true
env_var = "KEY"
[providers.openai.prices.big]
input = "7"
output = "7"
"""


def wheel(directory: Path, source: str = DATA) -> Path:
    path = directory / "genai_prices-0.0.7-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("genai_prices/data.py", source)
    return path


def table(directory: Path) -> PriceTable:
    return read_wheel(wheel(directory))


def test_the_highest_price_in_force_is_taken(tmp_path: Path) -> None:
    """Of tiers and kinds of cache; one that has not begun is none, and one too small to be written
    is rounded up."""
    found = table(tmp_path)
    assert (found.version, found.newest) == ("0.0.7", date(2026, 1, 2))
    rows = found.prices("openai", "", date(2026, 11, 1))
    assert rows is not None
    assert [row.pattern for row in rows] == ["big", "big-*", "*embed*"]
    assert (rows[0].input, rows[0].output) == ("3", "10")
    assert (rows[0].cache_read, rows[0].cache_write) == ("0.123457", "4")
    assert (rows[2].input, rows[2].output, rows[2].cache_read) == ("0.1", "0", "")
    before = found.prices("openai", "https://api.openai.com/v1", date(2025, 1, 1))
    assert before is not None
    assert before[0].input == "9"
    assert found.prices("openai", "http://models.example.org/v1", date(2026, 1, 1)) is None


def test_the_block_is_replaced_and_the_rest_stays(tmp_path: Path) -> None:
    """Two updates leave one block, and the manifest is valid."""
    rows = table(tmp_path).prices("openai", "", date(2026, 11, 1))
    assert rows is not None
    once = with_block(MANIFEST, "a table", {"openai": rows[1:]})
    assert with_block(once, "a table", {"openai": rows[1:]}) == once
    assert once.startswith(MANIFEST)
    assert without_block(once).strip() == MANIFEST.strip()
    prices = tomllib.loads(once)["providers"]["openai"]["prices"]
    assert set(prices) == {"big", "big-*", "*embed*"}
    assert parse(once.encode(), "x").findings == ()


@pytest.mark.parametrize(
    "source",
    ["", "providers = [open('/etc/passwd')", "providers = [x for x in ()]", "providers = 1 + 1"],
)
def test_a_table_of_another_form_is_an_error(tmp_path: Path, source: str) -> None:
    """Nothing of it is run."""
    with pytest.raises(AgentboxError, match="cannot read the table of prices"):
        read_wheel(wheel(tmp_path, source))


def test_without_the_package_the_manifest_is_unchanged(tmp_path: Path) -> None:
    """Exit 4 says what to do."""
    manifest = tmp_path / "agentbox.toml"
    manifest.write_text(MANIFEST)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "agentbox", "--manifest", str(manifest), "prices", "update"],
        env={
            **environment(),
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(tmp_path),
            "HOME": str(tmp_path),
        },
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 4
    assert "cannot download the table of prices" in done.stderr
    assert manifest.read_text() == MANIFEST

"""The prices in the manifest: one block at its end, between two marks, which an update replaces."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from agentbox.host.prices.table import ListedPrice

BEGIN: Final = "# >>> prices, written by `agentbox prices update`; edits between the marks are lost"
END: Final = "# <<< prices"
_BLOCK: Final = re.compile(
    rf"\n*{re.escape(BEGIN)}\n.*?^{re.escape(END)}$\n?", re.DOTALL | re.MULTILINE
)


def without_block(text: str) -> str:
    """The manifest without what an earlier update wrote."""
    return _BLOCK.sub("\n", text)


def with_block(text: str, origin: str, prices: Mapping[str, Sequence[ListedPrice]]) -> str:
    """The manifest with the prices of each provider at its end. `origin` names their source."""
    lines = [
        BEGIN,
        f"# {origin}",
        *(line for name, rows in prices.items() for line in _tables(name, rows)),
        END,
    ]
    return f"{without_block(text).rstrip()}\n\n" + "\n".join(lines) + "\n"


def _tables(provider: str, rows: Iterable[ListedPrice]) -> Iterator[str]:
    for row in rows:
        yield f"[providers.{provider}.prices.{json.dumps(row.pattern)}]"
        for name in ("input", "output", "cache_read", "cache_write"):
            if text := getattr(row, name):
                yield f'{name} = "{text}"'

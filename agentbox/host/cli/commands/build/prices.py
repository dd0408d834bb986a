"""`agentbox prices`: prices of models in the manifest."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import click

from agentbox.host.cli.context import CliContext
from agentbox.host.cli.output import pluralize

if TYPE_CHECKING:
    from agentbox.host.prices.table import ListedPrice, PriceTable
    from agentbox.manifest.tables.providers import ProviderTable


@click.group(name="prices")
def command() -> None:
    """Manage the prices of models in the manifest: update."""


@command.command()
@click.pass_obj
def update(cli: CliContext) -> None:
    """Write the prices of every provider's models to the end of the manifest.

    They come from the maintained table of the package `genai-prices`, which is downloaded by the
    hash in requirements.prices. Where a price depends on the length of the input, the time of the
    day or the kind of cache, the highest is written. Prices that you wrote yourself stay, and
    replace those of the table.
    """
    from agentbox.core.errors import AgentboxError
    from agentbox.core.files.atomic import replace
    from agentbox.host.prices.manifest_block import with_block, without_block
    from agentbox.host.prices.table import download
    from agentbox.manifest.load import parse

    text = without_block(cli.manifest.read_text(encoding="utf-8"))
    manifest = parse(text.encode(), str(cli.manifest))
    if manifest.effective is None:
        raise AgentboxError(
            f"cannot use {cli.manifest}: {manifest.findings[0].message}",
            "Run `agentbox config validate`, fix the findings, then run this command again.",
        )
    model, table = manifest.effective, download()
    if model.cost.currency != "USD":
        raise AgentboxError(
            f"cannot write prices in {model.cost.currency}: the table has US dollars",
            "Set cost.currency to USD, or write [providers.<name>.prices] yourself.",
        )
    chosen: dict[str, list[ListedPrice]] = {}
    for name, provider in model.providers.items():
        rows = _choose(table, provider)
        if rows is None:
            cli.out.line(f"{name}: the table does not know {provider.base_url}; no price written")
        else:
            chosen[name] = rows
            cli.out.line(f"{name}: {pluralize(len(rows), 'price')}")
    changed = f", newest change {table.newest}" if table.newest else ""
    origin = f"genai-prices {table.version}{changed}; written {date.today()}"
    written = with_block(text, origin, chosen)
    if findings := parse(written.encode(), str(cli.manifest)).findings:
        raise AgentboxError(
            f"cannot write prices to {cli.manifest}: {findings[0].message}",
            "Write [providers.<name>.prices] as tables of their own, not inline.",
        )
    replace(cli.manifest, written.encode())
    cli.out.document(
        {"source": origin, "prices": {name: len(rows) for name, rows in chosen.items()}}
    )
    cli.out.line(f"wrote {cli.manifest} from {origin}")


def _choose(table: PriceTable, provider: ProviderTable) -> list[ListedPrice] | None:
    """Prices of the models that the provider serves, without those that the operator wrote. None
    for an endpoint that the table does not know."""
    from agentbox.policy.patterns import globs

    listed = table.prices(provider.kind, provider.base_url, date.today())
    if listed is None:
        return None
    return [
        row
        for row in listed
        if row.pattern not in provider.prices
        and any(globs.overlaps(served, row.pattern) for served in provider.models)
    ]

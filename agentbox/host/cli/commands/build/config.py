"""`agentbox config`: validate, explain, show, diff."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from agentbox.host.cli.context import CliContext

if TYPE_CHECKING:
    from agentbox.manifest.load import Manifest

SYSTEMS = ("x86_64-linux", "aarch64-linux")


@click.group()
def command() -> None:
    """Check and inspect the manifest: validate, explain, show, diff."""


@command.command()
@click.argument("path", required=False, type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json", "sarif"]),
    default=None,
    help="[default: text]",
)
@click.option("--strict", is_flag=True, help="Treat warnings as errors for the exit code.")
@click.option(
    "--check-env", is_flag=True, help="Also check that the variables named in the manifest are set."
)
@click.option(
    "--system",
    "systems",
    type=click.Choice(SYSTEMS),
    multiple=True,
    help="A system to check for; may be repeated.",
)
@click.option(
    "--quiet", is_flag=True, help="Text: only findings that affect the exit code, no summary."
)
@click.pass_obj
def validate(
    cli: CliContext,
    path: Path | None,
    output_format: str | None,
    strict: bool,
    check_env: bool,
    systems: tuple[str, ...],
    quiet: bool,
) -> int:
    """Check a manifest (PATH, `-` = stdin) against the schema and every rule.

    Exit 0: valid. 1: an error, or a warning with --strict. 2: unreadable.
    """
    from agentbox.host.cli.validation_run import ValidationRun

    validation = ValidationRun(path or cli.manifest, systems=systems, check_env=check_env)
    report = validation.report()
    if output_format == "sarif":
        validation.print_sarif(report)
    elif output_format == "json" or (output_format is None and cli.json):
        validation.print_json(report)
    else:
        validation.print_text(report, strict=strict, quiet=quiet or cli.quiet, color=cli.color)
    failed = report.counts["error"] or (strict and report.counts["warning"])
    return 1 if failed else 0


@command.command()
@click.argument("query", metavar="KEY|CODE")
@click.pass_obj
def explain(cli: CliContext, query: str) -> int:
    """Explain a rule's CODE or a manifest KEY. Exit 2 if it does not exist."""
    from agentbox.host.cli.explanation import explain_code, explain_key, is_code

    explanation = (
        explain_code(query.upper()) if is_code(query) else explain_key(_load_if_usable(cli), query)
    )
    cli.out.document(explanation.data)
    cli.out.block(explanation.text)
    return 0


@command.command()
@click.option(
    "--resolved",
    is_flag=True,
    help="Show the source and effects of each value, and what the manifest enables.",
)
@click.pass_obj
def show(cli: CliContext, resolved: bool) -> int:
    """Print every key with its value, defaults included, as TOML.

    With --resolved each key is followed by its source (a line, the default, or another key), what a
    change needs, the generated files it affects, why nothing reads it, and the rules that read it.
    """
    from agentbox.host.cli.effective_manifest import effective_tables

    manifest = cli.load_manifest()
    if resolved:
        _show_resolved(cli, manifest)
        return 0
    cli.out.document(effective_tables(manifest))
    if not cli.json:
        import tomli_w

        cli.out.raw(tomli_w.dumps(effective_tables(manifest)).rstrip())
    return 0


def _show_resolved(cli: CliContext, manifest: Manifest) -> None:
    from agentbox.host.cli.effective_manifest import (
        commented_toml,
        effective_tables,
        enabled_summary,
    )
    from agentbox.host.cli.output import pluralize
    from agentbox.host.cli.resolved_keys import resolve_keys
    from agentbox.manifest.features.loader import load_features

    features = load_features()
    with cli.out.stage("resolve") as stage:
        notes = resolve_keys(manifest, features)
        stage.result = pluralize(len(notes), "key")
    summary = enabled_summary(manifest, features)
    keys = {path: note.to_json() for path, note in notes.items()}
    cli.out.document({**effective_tables(manifest), "resolved": {**summary, "keys": keys}})
    cli.out.raw(commented_toml(manifest, notes).lstrip("\n"))
    cli.out.raw("\n# resolved")
    for name, value in summary.items():
        cli.out.line(f"# {name}: {', '.join(value)}")


@command.command()
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json"]),
    default=None,
    help="[default: text]",
)
@click.pass_obj
def diff(cli: CliContext, old: Path, new: Path, output_format: str | None) -> int:
    """Compare the effective values of two manifests, and show what a change from OLD to NEW needs.

    Exit 0: equal. 1: different. 2: one is unreadable.
    """
    from agentbox.host.cli.manifest_diff import compare, print_json, print_text

    difference = compare(old, new)
    if output_format == "json" or (output_format is None and cli.json):
        print_json(difference)
    else:
        print_text(difference)
    return 1 if difference.changes else 0


def _load_if_usable(cli: CliContext) -> Manifest | None:
    """The manifest if there is a valid one; `explain` also works without."""
    from agentbox.manifest.load import load

    if not cli.manifest.exists():
        return None
    manifest = load(cli.manifest)
    return manifest if manifest.effective is not None else None

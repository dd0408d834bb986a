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
    """The manifest: check it, look keys and codes up, see what it means, compare two."""


@command.command()
@click.argument("path", required=False, type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "sarif"]),
    default=None,
    help="[default: text]",
)
@click.option("--strict", is_flag=True, help="Warnings decide the exit code as errors do.")
@click.option(
    "--check-env", is_flag=True, help="Check too that the variables the manifest names are set."
)
@click.option(
    "--system",
    "systems",
    type=click.Choice(SYSTEMS),
    multiple=True,
    help="A system to check for. Repeatable.",
)
@click.option(
    "--quiet", is_flag=True, help="Text: only findings that decide the exit code, no summary."
)
@click.pass_obj
def validate(
    cli: CliContext,
    path: Path | None,
    form: str | None,
    strict: bool,
    check_env: bool,
    systems: tuple[str, ...],
    quiet: bool,
) -> int:
    """Check a manifest (PATH, `-` = stdin) against the schema and every rule.

    Exit 0: valid. 1: an error, or a warning with --strict. 2: it could not be read.
    """
    from agentbox.host.cli.validation import Validation

    validation = Validation(path or cli.manifest, systems=systems, check_env=check_env)
    report = validation.report()
    if form == "sarif":
        validation.print_sarif(report)
    elif form == "json" or (form is None and cli.json):
        validation.print_json(report)
    else:
        validation.print_text(report, strict=strict, quiet=quiet or cli.quiet, color=cli.color)
    failed = report.counts["error"] or (strict and report.counts["warning"])
    return 1 if failed else 0


@command.command()
@click.argument("what", metavar="KEY|CODE")
@click.pass_obj
def explain(cli: CliContext, what: str) -> int:
    """Say what a rule's CODE or a manifest KEY means. Exit 2 for one that does not exist."""
    from agentbox.host.cli.explanation import explain_code, explain_key, is_code

    explanation = (
        explain_code(what.upper()) if is_code(what) else explain_key(_load_if_usable(cli), what)
    )
    cli.out.document(explanation.data)
    cli.out.block(explanation.text)
    return 0


@command.command()
@click.option(
    "--resolved",
    is_flag=True,
    help="Say of each value where it comes from and what it touches, and what the manifest turns on.",
)
@click.pass_obj
def show(cli: CliContext, resolved: bool) -> int:
    """Print every key with its value, defaults included, as TOML.

    With --resolved each key is followed by its source (a line, the default, or the key it is taken from), what a change
    of it needs, the generated files that another value alters, why nothing reads it if so, and the rules that read it.
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
    "--format", "form", type=click.Choice(["text", "json"]), default=None, help="[default: text]"
)
@click.pass_obj
def diff(cli: CliContext, old: Path, new: Path, form: str | None) -> int:
    """Compare the effective values of two manifests, and say what a change from OLD to NEW needs.

    Exit 0: equal. 1: different. 2: one of them could not be read.
    """
    from agentbox.host.cli.manifest_diff import compare, print_json, print_text

    difference = compare(old, new)
    if form == "json" or (form is None and cli.json):
        print_json(difference)
    else:
        print_text(difference)
    return 1 if difference.changes else 0


def _load_if_usable(cli: CliContext) -> Manifest | None:
    """The manifest where there is a usable one: `explain` also works without."""
    from agentbox.manifest.load import load

    if not cli.manifest.exists():
        return None
    manifest = load(cli.manifest)
    return manifest if manifest.effective is not None else None

"""`agentbox render`: writes, prints or compares the generated files."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agentbox.core.errors import ExitCode
from agentbox.host.cli.context import CliContext

if TYPE_CHECKING:
    from agentbox.plan.render.targets import RenderInput

TARGETS = (
    "all",
    "compose",
    "devcontainer",
    "env",
    "kubernetes",
    "plan",
    "podman",
    "probes",
    "prometheus",
    "supervisord",
)

_BOX_TARGETS = {"all": "compose", "compose": "compose", "env": "env"}
"""Target -> target whose files `up` writes into the state directory."""


@click.command()
@click.argument("target", type=click.Choice(TARGETS))
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Directory to write to. [default: stdout]",
)
@click.option(
    "--check",
    is_flag=True,
    help="Only compare with the files in --out (or of the box); exit 1 if different.",
)
@click.option(
    "--image-ref",
    default="",
    metavar="NAME@sha256:…",
    help="Image reference in the files. [default: the plan's tag]",
)
@click.option(
    "--project",
    type=click.Path(path_type=Path, file_okay=False, exists=True, resolve_path=True),
    help="Mount this directory instead of the volume `workspace`, as `up --project` does.",
)
@click.option(
    "--allow-psa",
    type=click.Choice(("restricted", "baseline", "privileged")),
    default="restricted",
    show_default=True,
    help="kubernetes: the Pod Security level of the namespace.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Make boot warnings about posture and drift fatal, as `up --strict` does.",
)
@click.pass_obj
def command(
    cli: CliContext,
    target: str,
    out: Path | None,
    check: bool,
    image_ref: str,
    project: Path | None,
    allow_psa: str,
    strict: bool,
) -> int:
    """Render TARGET from the manifest and the lock.

    Without --out the text is printed (for a target with several files the main one). --check
    without --out compares the files that `up` wrote for this box. kubernetes needs --image-ref with
    a digest; `all` omits it otherwise, with a message. Exit 1 if an exception needs a wider Pod
    Security level than --allow-psa.
    """
    from agentbox.plan.render.targets import excluded_targets, render

    if out == Path("-"):  # stdout, as other commands have it
        if check:
            raise click.UsageError("--check compares with files: give their directory with --out")
        out = None
    for_box = check and out is None
    if for_box and target not in _BOX_TARGETS:
        raise click.UsageError(
            f"`up` writes no file for {target}: give the directory to check with --out"
        )
    inputs = _render_inputs(cli, image_ref, for_box=for_box)
    inputs = replace(
        inputs,
        allow_psa=allow_psa,
        project=project or inputs.project,
        strict=strict or inputs.strict,
    )
    selected = _BOX_TARGETS[target] if for_box else target
    for name in excluded_targets(selected, inputs):
        cli.out.error(f"{name} omitted: it needs --image-ref NAME@sha256:… and no --project")
    files = render(selected, inputs)
    if check:
        return _compare_files(cli, files, out or cli.state().compose_dir)
    if out is None:
        return _print_files(cli, target, files)
    return _write_files(cli, files, out)


def _render_inputs(cli: CliContext, image_ref: str, *, for_box: bool) -> RenderInput:
    """The inputs of rendering; with `for_box` options come from the record of the last start."""
    from agentbox.core.paths import CHECKOUT
    from agentbox.host.cli.stages.image import plan_for
    from agentbox.plan.render.targets import RenderInput

    manifest = cli.load_manifest()
    lock = cli.manifest.parent / "agentbox.lock"
    plan = plan_for(
        manifest, lock if lock.exists() else CHECKOUT / "agentbox.lock", test_hooks=False
    )
    record = cli.state().record() if for_box else None
    if record is None:
        return RenderInput(plan, manifest.raw, image_ref)
    project = Path(record.project) if record.project else None
    return RenderInput(
        plan,
        manifest.raw,
        image_ref or record.image_ref,
        record.local_id,
        project,
        record.strict,
        record.volumes,
    )


def _print_files(cli: CliContext, target: str, files: Mapping[str, bytes]) -> int:
    from agentbox.plan.render.targets import MAIN_FILE

    texts = {name: content.decode() for name, content in sorted(files.items())}
    cli.out.document(texts)
    main = MAIN_FILE.get(target)
    selected = {name: text for name, text in texts.items() if main in (None, name)}
    for name, text in selected.items():
        cli.out.raw(f"==> {name} <==\n{text}" if len(selected) > 1 else text.rstrip("\n"))
    return ExitCode.DONE


def _write_files(cli: CliContext, files: Mapping[str, bytes], out: Path) -> int:
    from agentbox.plan.render.files import write

    written = [str(path) for path in write(files, out)]
    cli.out.document({"written": written})
    for path in written:
        cli.out.line(path)
    return ExitCode.DONE


def _compare_files(cli: CliContext, files: Mapping[str, bytes], directory: Path) -> int:
    differences = {
        name: text
        for name, content in sorted(files.items())
        if (text := _diff(directory / name, content))
    }
    cli.out.document({"folder": str(directory), "different": sorted(differences)})
    for text in differences.values():
        cli.out.raw(text)
    if not differences:
        cli.out.line(f"same: {len(files)} files in {directory}")
    return ExitCode.BAD if differences else ExitCode.DONE


def _diff(path: Path, content: bytes) -> str:
    """A unified diff from the file to its rendered content; empty if equal. A missing file counts
    as empty."""
    existing = path.read_bytes() if path.is_file() else b""
    if existing == content and path.is_file():
        return ""
    old, new = (data.decode(errors="replace").splitlines() for data in (existing, content))
    return "\n".join(difflib.unified_diff(old, new, str(path), f"{path} (rendered)", lineterm=""))

"""`agentbox build`: builds the image of a manifest and loads it into the engine."""

from __future__ import annotations

import shutil
import time
from dataclasses import asdict
from pathlib import Path

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.paths import CHECKOUT
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.stages.image import build_key
from agentbox.host.cli.stages.lock_and_fetch import lock_and_fetch
from agentbox.host.cli.stages.validate import load_valid_manifest
from agentbox.host.engines.docker import daemon_status
from agentbox.host.engines.docker.docker import DockerEngine
from agentbox.host.engines.state import BoxState, BuildStamp
from agentbox.host.image.archive import BuildResult, read_archive
from agentbox.host.image.nix_build import build
from agentbox.host.packages.lock_inputs import host_system, own_skills


@click.command(name="build")
@click.option(
    "--system",
    default=None,
    metavar="S",
    help="x86_64-linux or aarch64-linux. [default: this machine's]",
)
@click.option(
    "--locked", is_flag=True, help="Fail instead of re-locking when agentbox.lock does not match."
)
@click.option(
    "--test-hooks",
    is_flag=True,
    help="Enable AGENTBOX_TEST_* variables in this image; for tests only.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also copy the archive to this file.",
)
@click.pass_obj
def command(
    cli: CliContext, system: str | None, locked: bool, test_hooks: bool, out: Path | None
) -> None:
    """Build the image with Nix and load it into the container engine.

    Locks and fetches the packages first if needed. Existing build results are reused; equal inputs
    give equal bytes on every machine.
    """
    started = time.monotonic()
    system = system or host_system()
    with cli.state().exclusive_lock():
        manifest = load_valid_manifest(cli)
        lock_and_fetch(cli, manifest, locked=locked, system=system)
        link = cli.state().directory / ("image" if system == host_system() else f"image-{system}")
        previous_layers = _previous_layers(link)
        with cli.out.stage("build") as stage:
            result = build(
                CHECKOUT,
                manifest=cli.manifest,
                lock=cli.lock,
                system=system,
                test_hooks=test_hooks,
                own_skills=own_skills(manifest),
                out_link=link,
                progress=cli.out.progress(),
            )
            stage.result = f"built {len(result.built)} derivations" if result.built else "unchanged"
        with cli.out.stage("load") as stage:
            stage.result = _load_image(result, foreign=system != host_system())
        if system == host_system():
            key = build_key(manifest, cli.lock, test_hooks=test_hooks)
            _store_stamp(cli.state(), key, result)
    if out is not None:
        _copy_archive(result.path, out)
    _print_result(cli, result, previous_layers, time.monotonic() - started)


def _previous_layers(link: Path) -> frozenset[str]:
    """The layer digests of the previous image."""
    if not link.exists():
        return frozenset()
    return frozenset(layer.digest for layer in read_archive(link.resolve()).layers)


def _load_image(result: BuildResult, *, foreign: bool) -> str:
    if foreign:
        return "not loaded: the image is for another system"
    if not daemon_status.is_reachable():
        return "not loaded: no container engine responds"
    engine = DockerEngine()
    if engine.has_image(result.image_id):
        return "unchanged"
    engine.load(result.path)
    return f"loaded {result.tag}"


def _store_stamp(state: BoxState, key: str, result: BuildResult) -> None:
    state.add_build(
        BuildStamp(
            key=key,
            image_id=result.image_id,
            manifest_digest=result.manifest_digest,
            tag=result.tag,
            plan_digest=result.plan_digest,
        )
    )


def _copy_archive(archive: Path, out: Path) -> None:
    try:
        shutil.copyfile(archive, out)
    except OSError as error:
        raise AgentboxError(
            f"cannot write {out}: {error.strerror}", exit_code=ExitCode.USAGE
        ) from error


def _print_result(
    cli: CliContext, result: BuildResult, previous_layers: frozenset[str], seconds: float
) -> None:
    new = [layer.name for layer in result.layers if layer.digest not in previous_layers]
    cli.out.document(asdict(result) | {"new_layers": new, "seconds": round(seconds, 3)})
    cli.out.line(f"image    {result.tag}@{result.manifest_digest}")
    cli.out.line(f"id       {result.image_id}")
    cli.out.line(f"archive  {result.path}")
    layers = ", ".join(f"{layer.name} {layer.size / 1e6:.1f}" for layer in result.layers)
    cli.out.line(f"size     {result.size / 1e6:.1f} MB compressed ({layers})")
    cli.out.line(f"new      {', '.join(new) or 'no layer'}")
    cli.out.line(f"time     {seconds:.1f} s")

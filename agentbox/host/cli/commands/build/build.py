"""`agentbox build`: from a manifest to an image, loaded into the engine."""

from __future__ import annotations

import shutil
import time
from dataclasses import asdict
from pathlib import Path

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.paths import CHECKOUT
from agentbox.host.cli.context import Cli
from agentbox.host.cli.stages.image import build_key
from agentbox.host.cli.stages.lock import lock_and_fetch
from agentbox.host.cli.stages.validate import validated
from agentbox.host.engines.docker import reach
from agentbox.host.engines.docker.docker import Docker
from agentbox.host.engines.state import BoxState, BuildStamp
from agentbox.host.image.archive import BuildResult, read_archive
from agentbox.host.image.nixbuild import build
from agentbox.host.packages.wanted import host_system


@click.command(name="build")
@click.option("--system", default=None, metavar="S", help="x86_64-linux or aarch64-linux. [default: this machine's]")
@click.option("--locked", is_flag=True, help="Refuse instead of re-locking when agentbox.lock does not fit.")
@click.option("--test-hooks", is_flag=True, help="Let AGENTBOX_TEST_* variables work in this image: for tests only.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Copy the archive to this file as well.")
@click.pass_obj
def command(cli: Cli, system: str | None, locked: bool, test_hooks: bool, out: Path | None) -> None:
    """Build the image with Nix and load it into the container engine.

    Locks and fetches the packages first if needed. Nothing that is already built is built again; the same inputs give
    the same bytes on every machine.
    """
    started = time.monotonic()
    system = system or host_system()
    with cli.state().exclusively():
        manifest = validated(cli)
        lock_and_fetch(cli, manifest, locked=locked, system=system)
        link = cli.state().folder / ("image" if system == host_system() else f"image-{system}")
        before = _layers_before(link)
        with cli.out.stage("build") as stage:
            result = build(
                CHECKOUT,
                manifest=cli.manifest,
                lock=cli.lock,
                system=system,
                test_hooks=test_hooks,
                out_link=link,
                progress=cli.out.progress(),
            )
            stage.said = f"built {len(result.built)} derivations" if result.built else "unchanged"
        with cli.out.stage("load") as stage:
            stage.said = _load(result, foreign=system != host_system())
        if system == host_system():
            key = build_key(manifest, cli.lock, test_hooks=test_hooks)
            _remember(cli.state(), key, result)
    if out is not None:
        _copy(result.path, out)
    _say(cli, result, before, time.monotonic() - started)


def _layers_before(link: Path) -> frozenset[str]:
    """The digests of the layers of the image built last."""
    if not link.exists():
        return frozenset()
    return frozenset(layer.digest for layer in read_archive(link.resolve()).layers)


def _load(result: BuildResult, *, foreign: bool) -> str:
    if foreign:
        return "not loaded: the image is for another system"
    if not reach.answers():
        return "not loaded: no container engine answers"
    engine = Docker()
    if engine.has_image(result.image_id):
        return "unchanged"
    engine.load(result.path)
    return f"loaded {result.tag}"


def _remember(state: BoxState, key: str, result: BuildResult) -> None:
    state.remember_build(
        BuildStamp(
            key=key,
            image_id=result.image_id,
            manifest_digest=result.manifest_digest,
            tag=result.tag,
            plan_digest=result.plan_digest,
        )
    )


def _copy(archive: Path, out: Path) -> None:
    try:
        shutil.copyfile(archive, out)
    except OSError as error:
        raise AgentboxError(f"cannot write {out}: {error.strerror}", exit_code=ExitCode.USAGE) from error


def _say(cli: Cli, result: BuildResult, before: frozenset[str], seconds: float) -> None:
    new = [layer.name for layer in result.layers if layer.digest not in before]
    cli.out.document(asdict(result) | {"new_layers": new, "seconds": round(seconds, 3)})
    cli.out.line(f"image    {result.tag}@{result.manifest_digest}")
    cli.out.line(f"id       {result.image_id}")
    cli.out.line(f"archive  {result.path}")
    layers = ", ".join(f"{layer.name} {layer.size / 1e6:.1f}" for layer in result.layers)
    cli.out.line(f"size     {result.size / 1e6:.1f} MB compressed ({layers})")
    cli.out.line(f"new      {', '.join(new) or 'no layer'}")
    cli.out.line(f"time     {seconds:.1f} s")

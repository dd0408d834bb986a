"""The steps of `agentbox verify` that ask an engine or a running box, and the order of them all."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agentbox.cli.context import Cli
from agentbox.cli.stages.image import plan_of
from agentbox.engine.choose import engine_named
from agentbox.engine.command import run, succeeds
from agentbox.engine.state import BoxRecord
from agentbox.errors import AgentboxError, ExitCode
from agentbox.image import BuildResult, flake_of, read_archive
from agentbox.image.verify.members import Archive
from agentbox.image.verify.rebuild import differences
from agentbox.image.verify.steps import (
    Step,
    against,
    check_blobs,
    check_chain,
    check_folder,
    check_loaded,
    check_rendered,
    check_rows,
)
from agentbox.lock import host_system
from agentbox.lockfile import read
from agentbox.manifest import Manifest
from agentbox.plan.model import Plan
from agentbox.render import compose_folder, config_layer
from agentbox.settings import CHECKOUT, Paths


@dataclass(frozen=True)
class Subject:
    """What is verified: the image that this checkout built last, and what it was built from."""

    cli: Cli
    manifest: Manifest
    lock: Path
    plan: Plan
    built: BuildResult
    record: BoxRecord | None


def subject_of(cli: Cli) -> Subject:
    """Raises AgentboxError (exit 2) when nothing was built yet."""
    manifest, link = cli.load_manifest(), cli.state().folder / "image"
    if not link.exists():
        raise AgentboxError(
            "cannot verify the image: none was built yet", "Run `agentbox build`.", exit_code=ExitCode.USAGE
        )
    built = read_archive(link.resolve())
    lock = cli.lock
    plan = plan_of(manifest, lock, test_hooks=built.test_hooks)
    return Subject(cli, manifest, lock, plan, built, cli.state().record())


def steps(subject: Subject, *, quick: bool, other: str | None) -> Iterator[Step]:
    """Every step, whatever the ones before it found."""
    archive = Archive(subject.built.path)
    try:
        yield check_rows(read(subject.lock), host_system())
        files = config_layer(subject.plan, manifest=subject.manifest.raw, lock=subject.lock.read_bytes())
        yield check_rendered(files, archive)
        yield _folder(subject)
        yield from [check_blobs(archive)] if quick else _rebuilt(subject)
        yield _against(archive, other) if other else _loaded(archive)
        yield _box(subject)
    finally:
        archive.close()


def _folder(subject: Subject) -> Step:
    record = subject.record
    if record is None or record.engine == "process":
        return Step("compose", "absent", "no container of this box was started")
    project = Path(record.project) if record.project else None
    files = compose_folder(
        subject.plan, record.image_ref, manifest=subject.manifest.raw, image_id=record.image_id, project=project,
        strict=record.strict,
    )  # fmt: skip
    return check_folder(files, subject.cli.state().compose_dir)


def _rebuilt(subject: Subject) -> Iterator[Step]:
    with flake_of(CHECKOUT, subject.cli.manifest, subject.lock) as flake:
        found = list(differences(flake, host_system(), subject.cli.out.progress()))
    if not found:
        yield Step("rebuild", "same", "every derivation from plan to image, built again")
    for difference in found:
        yield Step.of("rebuild", difference, "")


def _loaded(archive: Archive) -> Step:
    if not succeeds(["docker", "image", "inspect", archive.image_id]):
        tag = archive.tag
        if not succeeds(["docker", "image", "inspect", tag]):
            return check_loaded(archive, None, lambda: archive.path)
        return _against(archive, tag)
    return check_loaded(archive, archive.image_id, lambda: archive.path)


def _against(archive: Archive, other: str) -> Step:
    """A file, else a reference that docker knows."""
    if Path(other).is_file():
        return against(archive, Path(other))
    with tempfile.TemporaryDirectory(prefix="agentbox-verify-") as scratch:
        saved = Path(scratch) / "saved.tar"
        run(["docker", "save", "--output", str(saved), other], doing=f"read the image {other}")
        return against(archive, saved)


def _box(subject: Subject) -> Step:
    record = subject.record
    if record is None or engine_named(record.engine).inspect(record).state != "running":
        return Step("box", "absent", "no box of this name runs")
    plan = subject.plan
    expected = {
        "lock": plan.digests.lock,
        "manifest": plan.digests.manifest,
        "plan": plan.digest,
    }
    sealed = json.loads(engine_named(record.engine).read(record, str(Paths().sentinel)))["digests"]
    if record.engine != "process":
        expected["closure"] = subject.built.closure_digest
        expected["image"] = _stated_image(subject.built, sealed["image"])
    step = check_chain(expected, sealed, "the sentinel")
    return step if step.outcome == "different" else _meta(subject, expected)


def _stated_image(built: BuildResult, stated: str | None) -> str:
    """An engine without content digests runs the image by its id; both name the same bytes."""
    return stated if stated in (built.manifest_digest, built.image_id) else built.manifest_digest


def _meta(subject: Subject, expected: dict[str, str]) -> Step:
    with subject.cli.client() as client:
        meta = client.call("meta")
    found = {name: meta[f"{name}_digest"] for name in ("lock", "manifest", "plan")}
    of_image = {"closure": meta["image"]["closure_digest"], "image": meta["image"]["digest"]}
    return check_chain(expected, found | of_image, "/v1/meta and the sentinel")

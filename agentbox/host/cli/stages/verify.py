"""The steps of `agentbox verify` in order, and those that need an engine or a running box."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.paths import CHECKOUT, Paths
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.stages.image import plan_for
from agentbox.host.engines.command import run, succeeds
from agentbox.host.engines.registry import engine_by_name
from agentbox.host.engines.state import BoxRecord
from agentbox.host.image.archive import BuildResult, read_archive
from agentbox.host.image.flake_reference import flake_reference
from agentbox.host.image.nix_build import build
from agentbox.host.image.verify.members import Archive
from agentbox.host.image.verify.rebuild import rebuild_differences
from agentbox.host.image.verify.steps import (
    VerifyStep,
    check_blobs,
    check_digests,
    check_directory,
    check_rendered,
    check_rows,
    check_skills,
    compare_archives,
)
from agentbox.host.packages.lock_inputs import folders_of, host_system, own_skills
from agentbox.manifest.load import Manifest, parse
from agentbox.plan.lockfile.reader import parse_lock
from agentbox.plan.model import Plan
from agentbox.plan.render.files import compose_files, config_layer
from agentbox.plan.render.skills import plan_skills


@dataclass(frozen=True)
class VerifyTarget:
    """What is verified. `manifest` and `plan` are current; `image_manifest` is the one in the
    image, since one image serves all manifests with equal rebuild keys. `rebuilt` is the image
    built again, `previous_image_id` the existing one."""

    cli: CliContext
    manifest: Manifest
    plan: Plan
    image_manifest: Manifest
    image_manifest_file: Path
    rebuilt: BuildResult
    previous_image_id: str
    record: BoxRecord | None


def verify_target(cli: CliContext) -> VerifyTarget:
    """Rebuilds the image from its inputs. Raises AgentboxError (exit 2) if none was built yet."""
    manifest, directory = cli.load_manifest(), cli.state().directory
    if not (directory / "image").exists():
        raise AgentboxError(
            "cannot verify the image: none was built yet",
            "Run `agentbox build`.",
            exit_code=ExitCode.USAGE,
        )
    previous = read_archive((directory / "image").resolve())
    image_manifest_file = directory / "verify" / "agentbox.toml"
    image_manifest = _read_image_manifest(previous, image_manifest_file)
    if image_manifest.raw == manifest.raw:
        image_manifest_file = cli.manifest
    rebuilt = build(
        CHECKOUT,
        manifest=image_manifest_file,
        lock=cli.lock,
        test_hooks=previous.test_hooks,
        own_skills=own_skills(manifest),
        out_link=directory / "verify" / "image",
        progress=cli.out.progress(),
    )
    plan = plan_for(manifest, cli.lock, test_hooks=previous.test_hooks)
    return VerifyTarget(
        cli,
        manifest,
        plan,
        image_manifest,
        image_manifest_file,
        rebuilt,
        previous.image_id,
        cli.state().record(),
    )


def _read_image_manifest(previous: BuildResult, file: Path) -> Manifest:
    """Extracts the manifest of an image to `file`."""
    archive = Archive(previous.path)
    try:
        data = archive.read("config", str(Paths().baked_manifest).lstrip("/"))
    finally:
        archive.close()
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    file.write_bytes(data)
    return parse(data, str(file))


def verify_steps(
    target: VerifyTarget, *, quick: bool, reference: str | None
) -> Iterator[VerifyStep]:
    """Yields every step, even after a difference."""
    archive, lock = Archive(target.rebuilt.path), target.cli.lock
    try:
        yield check_rows(parse_lock(lock), host_system())
        plan = plan_for(target.image_manifest, lock, test_hooks=target.rebuilt.test_hooks)
        skills = plan_skills(plan, folders_of(target.manifest))
        layer = config_layer(
            plan, manifest=target.image_manifest.raw, lock=lock.read_bytes(), skills=skills
        )
        yield check_rendered(layer, archive)
        yield check_skills(plan.digests.skills, archive)
        yield _compare_directory(target)
        yield from [check_blobs(archive)] if quick else _compare_rebuild(target)
        yield (
            _compare_archive(archive, reference) if reference else _compare_loaded(target, archive)
        )
        yield _compare_box(target)
    finally:
        archive.close()


def _compare_directory(target: VerifyTarget) -> VerifyStep:
    record = target.record
    if record is None or record.engine == "process":
        return VerifyStep("compose", "absent", "no container of this box was started")
    project = Path(record.project) if record.project else None
    files = compose_files(
        target.plan,
        record.image_ref,
        manifest=target.manifest.raw,
        image_id=record.local_id,
        project=project,
        strict=record.strict,
        volumes=record.volumes,
    )
    return check_directory(files, target.cli.state().compose_dir)


def _compare_rebuild(target: VerifyTarget) -> Iterator[VerifyStep]:
    with flake_reference(
        CHECKOUT,
        target.image_manifest_file,
        target.cli.lock,
        own_skills=own_skills(target.manifest),
    ) as flake:
        differing = list(rebuild_differences(flake, host_system(), target.cli.out.progress()))
    if not differing:
        yield VerifyStep("rebuild", "same", "every derivation from plan to image was rebuilt")
    for difference in differing:
        yield VerifyStep.from_difference("rebuild", difference, "")


def _compare_loaded(target: VerifyTarget, archive: Archive) -> VerifyStep:
    """Compares the image of the last start, else the last build, as docker has it now."""
    record = target.record
    image_id = (
        record.image_id if record is not None and record.image_id else target.previous_image_id
    )
    if not succeeds(["docker", "image", "inspect", image_id]):
        return VerifyStep("image", "absent", f"no engine has {image_id}")
    if image_id == archive.image_id:
        return VerifyStep("image", "same", f"{image_id} and its {len(archive.diff_ids)} layers")
    return _compare_archive(archive, image_id)


def _compare_archive(archive: Archive, reference: str) -> VerifyStep:
    """Compares with a file, else with a docker image reference."""
    if Path(reference).is_file():
        return compare_archives(archive, Path(reference))
    with tempfile.TemporaryDirectory(prefix="agentbox-verify-") as scratch:
        saved = Path(scratch) / "saved.tar"
        run(
            ["docker", "save", "--output", str(saved), reference],
            doing=f"read the image {reference}",
        )
        return compare_archives(archive, saved)


def _compare_box(target: VerifyTarget) -> VerifyStep:
    record = target.record
    if record is None or engine_by_name(record.engine).inspect(record).state != "running":
        return VerifyStep("box", "absent", "no box of this name runs")
    plan = target.plan
    expected = {
        "lock": plan.digests.lock,
        "manifest": plan.digests.manifest,
        "plan": plan.digest,
    }
    sealed = json.loads(engine_by_name(record.engine).read(record, str(Paths().sentinel)))[
        "digests"
    ]
    if record.engine != "process":
        expected["closure"] = target.rebuilt.closure_digest
        expected["image"] = _expected_image(target.rebuilt, sealed["image"])
    step = check_digests(expected, sealed, "the sentinel")
    return step if step.outcome == "different" else _compare_meta(target, expected)


def _expected_image(built: BuildResult, reported: str | None) -> str:
    """The expected image digest: an engine without content digests reports the image id."""
    return (
        reported if reported in (built.manifest_digest, built.image_id) else built.manifest_digest
    )


def _compare_meta(target: VerifyTarget, expected: dict[str, str]) -> VerifyStep:
    with target.cli.client() as client:
        meta = client.call("meta")
    reported = {name: meta[f"{name}_digest"] for name in ("lock", "manifest", "plan")}
    image_digests = {"closure": meta["image"]["closure_digest"], "image": meta["image"]["digest"]}
    return check_digests(expected, reported | image_digests, "/v1/meta and the sentinel")

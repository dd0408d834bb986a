"""The steps of `agentbox verify` that ask an engine or a running box, and the order of them all."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.paths import CHECKOUT, Paths
from agentbox.host.cli.context import Cli
from agentbox.host.cli.stages.image import plan_of
from agentbox.host.engines.command import run, succeeds
from agentbox.host.engines.named import engine_named
from agentbox.host.engines.state import BoxRecord
from agentbox.host.image.archive import BuildResult, read_archive
from agentbox.host.image.flakeref import flake_of
from agentbox.host.image.nixbuild import build
from agentbox.host.image.verify.members import Archive
from agentbox.host.image.verify.rebuild import differences
from agentbox.host.image.verify.steps import (
    Step,
    against,
    check_blobs,
    check_chain,
    check_folder,
    check_rendered,
    check_rows,
)
from agentbox.host.packages.wanted import host_system
from agentbox.manifest.load import Manifest, parse
from agentbox.plan.lockfile.reader import read
from agentbox.plan.model import Plan
from agentbox.plan.render.files import compose_folder, config_layer


@dataclass(frozen=True)
class Subject:
    """What is verified. `manifest` and `plan` are the operator's now, those of the image are `baked`: one image serves
    every manifest that differs in no rebuild key. `fresh` is the image derived again, `last_id` the one built before."""

    cli: Cli
    manifest: Manifest
    plan: Plan
    baked: Manifest
    baked_file: Path
    fresh: BuildResult
    last_id: str
    record: BoxRecord | None


def subject_of(cli: Cli) -> Subject:
    """Derives the image again from what it was built from. Raises AgentboxError (exit 2) when none was built yet."""
    manifest, folder = cli.load_manifest(), cli.state().folder
    if not (folder / "image").exists():
        raise AgentboxError(
            "cannot verify the image: none was built yet", "Run `agentbox build`.", exit_code=ExitCode.USAGE
        )
    last = read_archive((folder / "image").resolve())
    baked_file = folder / "verify" / "agentbox.toml"
    baked = _baked(last, baked_file)
    if baked.raw == manifest.raw:
        baked_file = cli.manifest
    fresh = build(
        CHECKOUT, manifest=baked_file, lock=cli.lock, test_hooks=last.test_hooks,
        out_link=folder / "verify" / "image", progress=cli.out.progress(),
    )  # fmt: skip
    plan = plan_of(manifest, cli.lock, test_hooks=last.test_hooks)
    return Subject(cli, manifest, plan, baked, baked_file, fresh, last.image_id, cli.state().record())


def _baked(last: BuildResult, file: Path) -> Manifest:
    """The manifest inside an image, copied to `file`."""
    archive = Archive(last.path)
    try:
        data = archive.read("config", str(Paths().baked_manifest).lstrip("/"))
    finally:
        archive.close()
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    file.write_bytes(data)
    return parse(data, str(file))


def steps(subject: Subject, *, quick: bool, other: str | None) -> Iterator[Step]:
    """Every step, whatever the ones before it found."""
    archive, lock = Archive(subject.fresh.path), subject.cli.lock
    try:
        yield check_rows(read(lock), host_system())
        plan = plan_of(subject.baked, lock, test_hooks=subject.fresh.test_hooks)
        yield check_rendered(config_layer(plan, manifest=subject.baked.raw, lock=lock.read_bytes()), archive)
        yield _folder(subject)
        yield from [check_blobs(archive)] if quick else _rebuilt(subject)
        yield _against(archive, other) if other else _loaded(subject, archive)
        yield _box(subject)
    finally:
        archive.close()


def _folder(subject: Subject) -> Step:
    record = subject.record
    if record is None or record.engine == "process":
        return Step("compose", "absent", "no container of this box was started")
    project = Path(record.project) if record.project else None
    files = compose_folder(
        subject.plan, record.image_ref, manifest=subject.manifest.raw, image_id=record.local_id,
        project=project, strict=record.strict,
    )  # fmt: skip
    return check_folder(files, subject.cli.state().compose_dir)


def _rebuilt(subject: Subject) -> Iterator[Step]:
    with flake_of(CHECKOUT, subject.baked_file, subject.cli.lock) as flake:
        found = list(differences(flake, host_system(), subject.cli.out.progress()))
    if not found:
        yield Step("rebuild", "same", "every derivation from plan to image, built again")
    for difference in found:
        yield Step.of("rebuild", difference, "")


def _loaded(subject: Subject, archive: Archive) -> Step:
    """The image that the box was started from, else the one built last, as docker has it now."""
    record = subject.record
    wanted = record.image_id if record is not None and record.image_id else subject.last_id
    if not succeeds(["docker", "image", "inspect", wanted]):
        return Step("image", "absent", f"no engine has {wanted}")
    if wanted == archive.image_id:
        return Step("image", "same", f"{wanted} and its {len(archive.diff_ids)} layers")
    return _against(archive, wanted)


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
        expected["closure"] = subject.fresh.closure_digest
        expected["image"] = _stated_image(subject.fresh, sealed["image"])
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

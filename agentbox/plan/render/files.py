"""The files of each rendering, and writing them."""

import json
from collections.abc import Collection, Mapping
from pathlib import Path

from agentbox.core.paths import Paths
from agentbox.manifest.skills.skill import Skill
from agentbox.plan.merge import effective_profile
from agentbox.plan.model import Plan
from agentbox.plan.render.build_record import build_record
from agentbox.plan.render.compose import COMPOSE_FILE, MANIFEST_FILE, compose
from agentbox.plan.render.env import env_file
from agentbox.plan.render.probes import probes
from agentbox.plan.render.seccomp import seccomp_text
from agentbox.plan.render.security_report import report_json, security_report
from agentbox.plan.render.skills import skill_catalogue
from agentbox.plan.render.supervisord import supervisord


def compose_files(
    plan: Plan,
    image_ref: str = "",
    *,
    manifest: bytes,
    image_id: str = "",
    project: Path | None = None,
    strict: bool = False,
    hooks: Mapping[str, str] | None = None,
    volumes: Mapping[str, str] | None = None,
    box: str = "",
    offline: bool = False,
) -> dict[str, bytes]:
    """The files of the compose project except the secrets, by relative path. `image_ref`
    (`name:tag@sha256:…`) is the default in the compose file; `.env` overrides it with `image_id`,
    if given.
    """
    stem = effective_profile(plan).seccomp
    return {
        COMPOSE_FILE: compose(
            plan,
            image_ref,
            project=project,
            strict=strict,
            hooks=hooks,
            volumes=volumes,
            box=box,
            offline=offline,
        ).encode(),
        ".env": env_file(plan, image_id or image_ref, box).encode(),
        MANIFEST_FILE: manifest,
        f"seccomp/{stem}.json": seccomp_text(stem).encode(),
        "security-report.json": report_json(plan, project=project).encode(),
        "security-report.md": security_report(plan, project=project).encode(),
    }


def config_layer(
    plan: Plan, *, manifest: bytes, lock: bytes, skills: Collection[Skill]
) -> dict[str, bytes]:
    """The files of layer `config` by box path, without the SBOM copy. `skills` are those of
    `plan_skills`."""
    box = Paths()
    return {
        str(box.baked_manifest): manifest,
        str(box.build_record): build_record(plan),
        str(box.lock): lock,
        str(box.plan): plan_text(plan).encode(),
        str(box.probes): probes(plan).encode(),
        str(box.supervisord_conf): supervisord(plan).encode(),
        str(box.skill_catalogue): skill_catalogue(skills),
        **{
            str(box.skills / skill.name / file.path): file.data
            for skill in skills
            for file in skill.files
        },
    }


def executable_files(skills: Collection[Skill]) -> frozenset[str]:
    """The box paths of that layer that may be executed."""
    box = Paths()
    return frozenset(
        str(box.skills / skill.name / file.path)
        for skill in skills
        for file in skill.files
        if file.executable
    )


def plan_text(plan: Plan) -> str:
    """plan.json for people and boot; the digest is that of the canonical form, not of this text."""
    return json.dumps(plan.to_json(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def render_all(plan: Plan, out: Path, *, manifest: bytes, image_ref: str = "") -> tuple[Path, ...]:
    """Writes every target below `out`; returns the paths, sorted. Raises OSError."""
    files = compose_files(plan, image_ref, manifest=manifest)
    files["supervisord.conf"] = supervisord(plan).encode()
    files["probes.json"] = probes(plan).encode()
    files["plan.json"] = plan_text(plan).encode()
    return write(files, out)


def write(
    files: Mapping[str, bytes], out: Path, executable: Collection[str] = ()
) -> tuple[Path, ...]:
    """Writes the files below `out` (also absolute paths), 0644, or 0755 if named in `executable`.
    Raises OSError."""
    written = []
    for name in sorted(files):
        path = out / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(files[name])
        path.chmod(0o755 if name in executable else 0o644)
        written.append(path)
    return tuple(written)

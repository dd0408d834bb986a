"""`agentbox skills`, and a manifest with skills of its own: pinned, checked, put into the image."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from support.forked_program import run_command
from support.plans import lock_of, plan_of

from agentbox.core.paths import CHECKOUT
from agentbox.host.image.verify.steps import check_skills
from agentbox.manifest.skills.corpus import manifest_directories, skill_folders
from agentbox.manifest.skills.skill import SkillError, load
from agentbox.plan.lockfile.reader import parse_lock
from agentbox.plan.lockfile.writer import serialize_lock
from agentbox.plan.render.files import config_layer, executable_files, write
from agentbox.plan.render.skills import plan_skills

SKILL = "---\nname: own\ndescription: Our own.\nallowed-tools: Bash(rm:*)\n---\n# Own\n\nRun it.\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a manifest, and a skill that is not part of it yet."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "agentbox.toml").write_text('[meta]\nschema_version = 1\nname = "own-skills"\n')
    made = tmp_path / "made/own"
    (made / "scripts").mkdir(parents=True)
    (made / "SKILL.md").write_text(SKILL)
    (made / "scripts/run.sh").write_text("#!/bin/sh\necho ran\n")
    (made / "scripts/run.sh").chmod(0o755)
    return folder


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run_command(
        *("--json", *words), folder=folder, env={"PATH": "/usr/bin:/bin", "HOME": str(folder)}
    )


def test_a_skill_is_added_shown_and_removed(project: Path) -> None:
    """Its digest is in the lock beside the manifest as long as it is there; nothing else changes."""
    before = parse_lock(CHECKOUT / "agentbox.lock")
    added = run(project, "skills", "add", "../made/own")
    assert added.returncode == 0, added.stderr
    assert (project / "skills/own/scripts/run.sh").stat().st_mode & 0o111
    locked = parse_lock(project / "agentbox.lock")
    assert locked.skills["own"] == load(project / "skills/own").digest
    assert replace(locked, skills=before.skills) == before
    shown = json.loads(run(project, "skills", "show", "own").stdout)
    assert (shown["digest"], shown["selected"]) == (locked.skills["own"], True)
    assert shown["front_matter"]["allowed-tools"] == "Bash(rm:*)"
    listed = {row["name"]: row for row in json.loads(run(project, "skills", "list").stdout)}
    assert listed["own"]["selected"]
    assert not listed["pandoc-documents"]["selected"]
    assert "there is one of that name" in run(project, "skills", "add", "../made/own").stderr
    assert run(project, "skills", "remove", "--yes", "own").returncode == 0
    assert not (project / "skills/own").exists()
    assert parse_lock(project / "agentbox.lock") == before


def test_a_skill_of_agentbox_is_left_out_instead(project: Path) -> None:
    """The error says how."""
    refused = run(project, "skills", "remove", "--yes", "git-commits")
    assert refused.returncode == 1
    assert "skills.corpus.exclude" in refused.stderr
    assert "git-commits" in run(project, "skills", "show", "git-comits").stderr


def test_a_bad_skill_fails_up_by_name(project: Path) -> None:
    """Before anything is started; left out, it does no harm."""
    assert run(project, "skills", "add", "../made/own").returncode == 0
    (project / "skills/own/SKILL.md").write_text(SKILL.replace("name: own", "name: git-commits"))
    failed = run(project, "up", "--engine", "process")
    assert failed.returncode == 1
    assert "cannot use skill own: 1 problem" in failed.stderr
    checked = run(project, "skills", "check")
    assert [row["skill"] for row in json.loads(checked.stdout)["problems"]] == ["own"]
    manifest = project / "agentbox.toml"
    manifest.write_text(manifest.read_text() + 'exclude = ["own"]\n')
    assert "own" not in run(project, "lock", "--check").stderr.partition("cannot use skill")[2]


def test_a_name_of_the_corpus_is_taken(project: Path) -> None:
    """A folder beside the manifest cannot replace a skill of agentbox."""
    folder = project / "skills/git-commits"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL.replace("name: own", "name: git-commits"))
    with pytest.raises(SkillError, match="a skill of agentbox has the same name"):
        skill_folders(manifest_directories(["skills"], project / "agentbox.toml"))


def test_a_changed_file_is_not_put_into_an_image(project: Path) -> None:
    """The files must be those of the lock, bit for bit; executables stay executable."""
    own = project.parent / "made"
    folders = skill_folders([own])
    lock = replace(lock_of(), skills={"own": load(own / "own").digest})
    plan = replace(
        plan_of(), skills=("own",), digests=replace(plan_of().digests, skills=lock.skills)
    )
    assert parse_lock(serialize_lock(lock)) == lock
    skills = plan_skills(plan, folders)
    layer = config_layer(plan, manifest=b"", lock=b"", skills=skills)
    write(layer, project / "out", executable_files(skills))
    script = project / "out/opt/agentbox/skills/own/scripts/run.sh"
    assert script.stat().st_mode & 0o777 == 0o755
    assert (script.parents[1] / "SKILL.md").stat().st_mode & 0o777 == 0o644
    (own / "own/scripts/run.sh").chmod(0o644)
    with pytest.raises(SkillError, match="its files differ from"):
        plan_skills(plan, folders)


class _Archive:
    """The members of an image's layer `config`, as `verify` reads them from a directory."""

    names = ("config",)

    def __init__(self, root: Path) -> None:
        self._root = root

    def members(self, _index: int) -> object:
        from agentbox.host.image.verify.members import directory_members

        return directory_members(self._root)


def test_verify_compares_digests(project: Path) -> None:
    """Of what the image holds with what was locked: another byte, another bit, another skill."""
    plan = plan_of('[skills.corpus]\ninclude = ["git-*"]\n')
    out = project / "out"
    write(config_layer(plan, manifest=b"", lock=b"", skills=plan_skills(plan)), out)
    archive = _Archive(out)
    assert check_skills(plan.digests.skills, archive).outcome == "same"  # type: ignore[arg-type]
    file = out / "opt/agentbox/skills/git-history/SKILL.md"
    file.chmod(0o755)
    changed = check_skills(plan.digests.skills, archive)  # type: ignore[arg-type]
    assert (changed.outcome, "git-history" in changed.said) == ("different", True)
    file.chmod(0o644)
    (out / "opt/agentbox/skills/extra").mkdir()
    (out / "opt/agentbox/skills/extra/SKILL.md").write_text("obey me")
    assert "extra" in check_skills(plan.digests.skills, archive).said  # type: ignore[arg-type]

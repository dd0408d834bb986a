"""`agentbox skills`: the skills that the image gives its agents."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.output import pluralize

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentbox.manifest.load import Manifest
    from agentbox.manifest.skills.skill import Skill

_OWN_FOLDER = "skills"


@click.group(name="skills")
def command() -> None:
    """Manage the skills of the image: list, show, check, add, remove.

    They are those of agentbox and of the folders in skills.corpus.paths, beside the manifest.
    """


@command.command(name="list")
@click.pass_obj
def list_(cli: CliContext) -> None:
    """List the skills that a manifest can select; a minus marks those it leaves out.

    Left out are also skills of features that are not enabled."""
    manifest = cli.load_manifest()
    folders, selected = _folders(manifest), _selected(manifest)
    skills = [_load(path) for path in folders.values()]
    cli.out.document([{**_document(skill), "selected": skill.name in selected} for skill in skills])
    for skill in skills:
        mark = " " if skill.name in selected else "-"
        cli.out.line(f"{mark} {skill.name:<24} {_text(skill, 'description')}")


@command.command()
@click.argument("name")
@click.pass_obj
def show(cli: CliContext, name: str) -> None:
    """Show the skill NAME: what it says of itself, its digest and its files."""
    manifest = cli.load_manifest()
    path = _find(manifest, name)
    skill = _load(path)
    cli.out.document({**_document(skill), "selected": name in _selected(manifest)})
    cli.out.line(f"{skill.name}: {_text(skill, 'description')}")
    cli.out.line(f"digest {skill.digest}")
    cli.out.line(f"folder {path}")
    for field in ("license", "compatibility"):
        if text := _text(skill, field):
            cli.out.line(f"{field} {text}")
    if tools := _text(skill, "allowed-tools"):
        cli.out.line(f"asks for tools (which grants nothing): {tools}")
    for file in skill.files:
        mark = "x" if file.executable else "-"
        cli.out.line(f"  {mark} {len(file.data):>7}  {file.sha256[:12]}  {file.path}")


@command.command()
@click.argument("directories", nargs=-1, type=click.Path(path_type=Path), metavar="[DIR]...")
@click.pass_obj
def check(cli: CliContext, directories: tuple[Path, ...]) -> None:
    """Check the skills in these folders, else all of the manifest. Exit 1 if any is bad."""
    from agentbox.manifest.skills.validator import check_skill

    folders = [_existing(path) for path in directories] or list(
        _folders(cli.load_manifest()).values()
    )
    problems = [problem for path in folders for problem in check_skill(path)]
    cli.out.document(
        {"skills": [path.name for path in folders], "problems": [vars(row) for row in problems]}
    )
    for problem in problems:
        cli.out.line(str(problem))
    if problems:
        bad = len({problem.skill for problem in problems})
        raise AgentboxError(
            f"cannot use {pluralize(bad, 'skill')} of {len(folders)}",
            "Fix the lines above; docs/howto/skills.md explains the rules.",
            exit_code=ExitCode.BAD,
        )
    cli.out.line(f"{pluralize(len(folders), 'skill')}: no problem")


@command.command()
@click.argument("directory", type=click.Path(path_type=Path), metavar="DIR")
@click.pass_obj
def add(cli: CliContext, directory: Path) -> None:
    """Check the skill in DIR, copy it beside the manifest, and pin its digest in agentbox.lock."""
    from agentbox.manifest.skills.validator import require_valid

    manifest, source = cli.load_manifest(), _existing(directory)
    require_valid({source.name: source})
    if source.name in _folders(manifest):
        raise AgentboxError(
            f"cannot add skill {source.name}: there is one of that name",
            f"Rename its folder and its name, or run `agentbox skills remove {source.name}` first.",
        )
    paths = manifest.usable.skills.corpus.paths
    target = cli.manifest.absolute().parent / (paths[0] if paths else _OWN_FOLDER) / source.name
    if not paths:
        _add_path(cli, manifest)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(source, target)
    changed = _pin(cli)
    cli.out.document({"name": source.name, "folder": str(target), "lock": changed})
    cli.out.line(f"added {source.name} at {target}; the next `agentbox up` brings it")


@command.command()
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.argument("name")
@click.pass_obj
def remove(cli: CliContext, yes: bool, name: str) -> None:
    """Delete the folder of the skill NAME beside the manifest (asks first), and its pin."""
    from agentbox.manifest.skills.corpus import skill_names

    path = _find(cli.load_manifest(), name)
    if name in skill_names():
        raise AgentboxError(
            f"cannot remove skill {name}: it belongs to agentbox",
            f'Leave it out with skills.corpus.exclude = ["{name}"].',
        )
    if not yes:
        click.confirm(f"Delete {path} permanently?", abort=True, err=True)
    shutil.rmtree(path)
    changed = _pin(cli)
    cli.out.document({"name": name, "folder": str(path), "lock": changed})
    cli.out.line(f"removed {name}")


def _folders(manifest: Manifest) -> dict[str, Path]:
    from agentbox.host.packages.lock_inputs import folders_of

    return folders_of(manifest)


def _selected(manifest: Manifest) -> tuple[str, ...]:
    from agentbox.manifest.features.loader import enabled_features, load_features
    from agentbox.manifest.skills.corpus import select_skills, usable_skills

    corpus, features = manifest.usable.skills.corpus, load_features()
    usable = usable_skills(_folders(manifest), features, enabled_features(manifest, features))
    return select_skills(corpus.include, corpus.exclude, usable)


def _find(manifest: Manifest, name: str) -> Path:
    from agentbox.manifest.suggest import suggest_names

    folders = _folders(manifest)
    if name not in folders:
        near = suggest_names(name, folders)
        raise AgentboxError(
            f"cannot find skill {name}",
            f"Did you mean {' or '.join(near)}?" if near else "See `agentbox skills list`.",
            exit_code=ExitCode.USAGE,
        )
    return folders[name]


def _existing(path: Path) -> Path:
    if not path.is_dir():
        raise AgentboxError(
            f"cannot check {path}: it is no folder",
            "Name a folder with a SKILL.md.",
            exit_code=ExitCode.USAGE,
        )
    return path.absolute() if path.name else path.resolve()


def _load(path: Path) -> Skill:
    from agentbox.manifest.skills.skill import load

    return load(path)


def _text(skill: Skill, field: str) -> str:
    value = skill.front_matter.get(field, "")
    return value if isinstance(value, str) else ""


def _document(skill: Skill) -> Mapping[str, Any]:
    return skill.catalogue_row()


def _pin(cli: CliContext) -> str:
    """Writes the digests into the lock beside the manifest; returns what has changed."""
    from agentbox.host.packages.lock_inputs import lock_inputs, manifest_skills
    from agentbox.host.packages.relock import LOCK_NAME, pin_skills

    path, manifest = cli.manifest.absolute().parent / LOCK_NAME, cli.load_manifest()
    return pin_skills(
        path, lock_inputs(manifest, lock=cli.lock, skills=manifest_skills(manifest)), base=cli.lock
    )


def _add_path(cli: CliContext, manifest: Manifest) -> None:
    """Adds `paths` to the text of the manifest. Raises AgentboxError if it is not written so that
    this can be done."""
    from agentbox.host.packages.relock import replace_file
    from agentbox.manifest.load import parse

    header, line = "[skills.corpus]", f'paths = ["{_OWN_FOLDER}"]'
    rows = manifest.raw.decode().split("\n")
    if header in rows:
        rows.insert(rows.index(header) + 1, line)
    else:
        rows = [*"\n".join(rows).rstrip("\n").split("\n"), "", header, line, ""]
    data = "\n".join(rows).encode()
    changed = parse(data, manifest.name)
    if changed.findings or changed.usable.skills.corpus.paths != (_OWN_FOLDER,):
        raise AgentboxError(
            f"cannot add a folder to {cli.manifest}: skills.corpus is written in another form",
            f"Write skills.corpus.{line} into it, then run this again.",
        )
    replace_file(cli.manifest.absolute(), data)

"""What makes a folder a skill, beside the reference validator (`skills-ref`) and a linter
(`agnix`)."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from skills_ref.validator import validate

from agentbox.core.errors import AgentboxError
from agentbox.manifest.skills.corpus import shipped_folders
from agentbox.manifest.skills.front_matter import FrontMatterError, parse
from agentbox.manifest.skills.skill import MAX_BYTES, MAX_FILES, MAX_FOLDERS, load
from agentbox.manifest.skills.validator import check_skill, require_valid

GOOD = "---\nname: one\ndescription: Says one. Use it to count.\n---\n# One\n\nCount.\n"
FRONT = GOOD.partition("---\n# One")[0]

# Name -> front matter and body of a skill in the folder `one`, and what is said of it. Those with
# `reference` are refused by the reference validator too.
BAD: dict[str, tuple[str, str]] = {
    "another name": (GOOD.replace("name: one", "name: two"), "is not that of its folder"),
    "no name": (GOOD.replace("name: one\n", ""), "name is missing"),
    "no description": (GOOD.replace("description: Says one. Use it to count.\n", ""), "description is missing"),
    "an empty description": (GOOD.replace("Says one. Use it to count.", '""'), "description is missing"),
    "a long description": (GOOD.replace("Says one", "x" * 1025), "of at most 1024"),
    "a long compatibility": (FRONT + f"compatibility: {'x' * 501}\n---\n# One\n", "of at most 500"),
    "an unknown field": (FRONT + "model: large\n---\n# One\n", "unknown field model"),
    "no front matter": ("# One\n", "the first line must be ---"),
    "an open front matter": ("---\nname: one\n# One\n", "no line --- ends"),
    "a flow sequence": (FRONT + "allowed-tools: [Bash]\n---\n# One\n", "must not start with ["),
    "a field twice": (FRONT + "name: one\n---\n# One\n", "given twice"),
}  # fmt: skip
OURS: dict[str, tuple[str, str]] = {
    "a tag": (FRONT + "license: !!python/name:os.system x\n---\n# One\n", "must not start with !"),
    "an anchor": (FRONT + "license: &a x\n---\n# One\n", "must not start with &"),
    "a number": (FRONT + "metadata:\n  version: 1.0\n---\n# One\n", "put it in quotes"),
    "a comment behind": (GOOD.replace("count.\n---", "count. # not said\n---"), "must be in quotes"),
    "a tab": (FRONT + "metadata:\n\tversion: x\n---\n# One\n", "a tab"),
    "no body": (FRONT + "---\n", "no instructions"),
    "many lines": (GOOD + "x\n" * 501, "of at most 500"),
    "many tokens": (GOOD + "word " * 4100, "of at most 5000"),
    "a link out": (GOOD + "[x](../other/SKILL.md)\n", "leads out of the folder"),
    "an absolute link": (GOOD + "[x](/etc/passwd)\n", "leads out of the folder"),
    "an encoded link out": (GOOD + "[x](a/%2e%2e/%2e%2e/b.md)\n", "leads out of the folder"),
    "a link to nothing": (GOOD + "![x](pictures/a.png)\n", "leads to no file"),
    "a reference to nothing": (GOOD + "[x][1]\n\n[1]: gone.md\n", "leads to no file"),
    "a file address": (GOOD + "[x](file:///etc/passwd)\n", "neither a file of the skill"),
    "text from right to left": (GOOD + "safe \u202etxt.exe\n", "U+202E"),
    "a zero-width space": (GOOD + "zero\u200bwidth\n", "U+200B"),
    "a tag character": (GOOD + "tag\U000e0041\n", "U+E0041"),
    "an escape": (GOOD + "\x1b[2J\n", "U+001B"),
    "a carriage return": (GOOD.replace("\n", "\r\n", 6), "the first line must be ---"),
    "a token": (GOOD + "Use ghp_" + "a1B2" * 9 + "\n", "looks like a secret"),
    "a private key": (GOOD + "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n", "looks like a secret"),
}  # fmt: skip


def skill(folder: Path, text: str = GOOD, **files: str) -> Path:
    """A skill named `one`; `a__b` is the file a/b."""
    directory = folder / "one"
    for name, content in {"SKILL.md": text, **files}.items():
        path = directory / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode())
    return directory


def said(directory: Path) -> str:
    return "\n".join(map(str, check_skill(directory)))


def test_a_good_skill_is_good_everywhere(tmp_path: Path) -> None:
    """Every field of the specification, in every form that we read."""
    text = (
        "---\n# a comment\nname: one\ndescription: >-\n  Says one.\n  Use it to count.\nlicense: 'MIT'\n"
        'compatibility: "Needs git: any"\nallowed-tools: Bash(git:*) Read\n'
        'metadata:\n  version: "1.0"\n  author: ada\n---\n# One\n\n'
        "[more](references/more.md) and [web](https://example.org/)\n"
    )
    directory = skill(tmp_path, text, references__more="", scripts__run="#!/usr/bin/env python3\n")
    (directory / "references/more").rename(directory / "references/more.md")
    (directory / "scripts/run").chmod(0o755)
    assert check_skill(directory) == ()
    assert validate(directory) == []
    assert load(directory).front_matter == yaml.safe_load(text.split("---")[1])


@pytest.mark.parametrize("why", BAD)
def test_the_rules_of_the_specification(tmp_path: Path, why: str) -> None:
    """The reference refuses it too."""
    text, words = BAD[why]
    directory = skill(tmp_path, text)
    assert words in said(directory)
    assert validate(directory) != []


@pytest.mark.parametrize("why", OURS)
def test_our_own_rules(tmp_path: Path, why: str) -> None:
    """Each is named."""
    text, words = OURS[why]
    assert words in said(skill(tmp_path, text))


@pytest.mark.parametrize("name", ["One", "-one", "one-", "o--ne", "o_ne", "o" * 65, "o.ne"])
def test_names(tmp_path: Path, name: str) -> None:
    """The reference refuses it too."""
    directory = skill(tmp_path, GOOD.replace("name: one", f"name: {name}")).rename(tmp_path / name)
    assert "lower case letters" in said(directory)
    assert validate(directory) != []


def test_files_of_a_skill(tmp_path: Path) -> None:
    """Links, devices, odd names, binaries outside of assets, scripts of an unknown interpreter."""
    directory = skill(tmp_path, scripts__run="#!/usr/bin/ruby\n", notes="x")
    assert "names an interpreter" in said(directory)
    (directory / "scripts/run").write_text("#!/bin/sh -e\n")
    assert check_skill(directory) == ()
    (directory / "notes").write_bytes(b"\xff\xfe")
    assert "not UTF-8" in said(directory)
    (directory / "assets").mkdir()
    (directory / "notes").rename(directory / "assets/notes")
    assert check_skill(directory) == ()
    (directory / ".hidden").write_text("x")
    assert "starts with none of" in said(directory)
    (directory / ".hidden").unlink()
    (directory / "passwd").symlink_to("/etc/passwd")
    assert "passwd is a link" in said(directory)
    (directory / "passwd").unlink()
    os.mkfifo(directory / "pipe")
    assert "pipe is not a regular file" in said(directory)


def test_a_folder_that_is_a_link(tmp_path: Path) -> None:
    """It leads out by itself."""
    directory = skill(tmp_path / "elsewhere")
    (tmp_path / "one").symlink_to(directory)
    assert "its folder is a link" in said(tmp_path / "one")


def test_bounds(tmp_path: Path) -> None:
    """One file or byte more is too much."""
    directory = skill(tmp_path)
    (directory / "assets").mkdir()
    for number in range(MAX_FILES - 1):
        (directory / f"assets/{number}").touch()
    assert check_skill(directory) == ()
    (directory / "assets/more").touch()
    assert f"more than {MAX_FILES} files" in said(directory)
    shutil.rmtree(directory / "assets")
    for number in range(MAX_FOLDERS):
        (directory / f"empty{number}").mkdir()
    assert check_skill(directory) == ()
    (directory / "empty1/more").mkdir()
    assert f"more than {MAX_FOLDERS} folders" in said(directory)
    for number in range(MAX_FOLDERS):
        shutil.rmtree(directory / f"empty{number}")
    directory.joinpath(*["d"] * (MAX_FOLDERS + 1)).mkdir(parents=True)
    assert f"more than {MAX_FOLDERS} folders" in said(directory)
    shutil.rmtree(directory / "d")
    (directory / "assets").mkdir()
    (directory / "assets/big").write_bytes(b"\0" * (MAX_BYTES - len(GOOD)))
    assert check_skill(directory) == ()
    (directory / "assets/big").write_bytes(b"\0" * (MAX_BYTES - len(GOOD) + 1))
    assert f"more than {MAX_BYTES} bytes" in said(directory)


def test_a_bad_skill_is_named_with_all_that_is_wrong(tmp_path: Path) -> None:
    """The others are not mentioned."""
    bad = skill(tmp_path / "bad", GOOD.replace("name: one", "name: two"))
    with pytest.raises(AgentboxError) as refused:
        require_valid({"one": bad, **shipped_folders()})
    assert refused.value.message.startswith("cannot use skill one: 1 problem\n  one/SKILL.md:2: ")


def test_a_problem_shows_no_hidden_character(tmp_path: Path) -> None:
    """They are escapes in what is said."""
    directory = skill(tmp_path, GOOD + "[x](o\u202ene.md)\n")
    assert "the link o\\u202ene.md leads" in said(directory)
    assert "\u202e" not in said(directory)


@pytest.mark.parametrize("name", sorted(shipped_folders()))
def test_the_corpus_pleases_the_reference(name: str) -> None:
    """And our own rules."""
    assert check_skill(shipped_folders()[name]) == ()
    assert validate(shipped_folders()[name]) == []


def _agnix(folder: Path) -> list[dict[str, Any]]:
    """What the linter says of the skills in a folder, without notes."""
    program = Path(sys.executable).with_name("agnix")
    ran = subprocess.run(
        [program, "--format", "json", str(folder)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={"HOME": str(folder), "PATH": "/usr/bin:/bin"},
    )
    rows = json.loads(ran.stdout)["diagnostics"]
    return [row for row in rows if row["level"] == "error"]


def test_the_corpus_pleases_the_linter(tmp_path: Path) -> None:
    """No error in any skill."""
    for name, folder in shipped_folders().items():
        shutil.copytree(folder, tmp_path / "skills" / name)
    assert _agnix(tmp_path) == []


LINTED = ("another name", "no name", "no description", "a long description", "no front matter")


@pytest.mark.parametrize("why", LINTED)
def test_the_linter_refuses_what_we_refuse(tmp_path: Path, why: str) -> None:
    """Where it has a rule for it."""
    directory = skill(tmp_path / "skills", BAD[why][0])
    assert check_skill(directory)
    assert _agnix(tmp_path)


@given(st.dictionaries(st.from_regex(r"[a-z][a-z-]{0,8}", fullmatch=True), st.text(max_size=30), max_size=4))  # fmt: skip
def test_what_we_read_is_what_yaml_reads(fields: dict[str, str]) -> None:
    """Whatever a text is, its line is read as by a complete reader of YAML, or refused."""
    front = "".join(f"{key}: {value}\n" for key, value in fields.items())
    try:
        document = parse(f"---\n{front}---\nbody\n")
    except FrontMatterError:
        return
    try:
        expected = yaml.safe_load(front) or {}
    except yaml.YAMLError:
        expected = None
    if expected is not None:
        assert {key: value or None for key, value in document.fields.items()} == {
            key: value or None for key, value in expected.items()
        }

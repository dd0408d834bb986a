"""Leaves the agent's branch: to the workspace itself, or through what the operator
applies from it.
"""

import os
import shutil
from contextlib import suppress
from typing import Final

from agentbox.sandbox.attacks.attempts import create_file, run_attempt, worst
from agentbox.sandbox.attacks.case import AttackGroup, TargetInfo, TargetMissing

SUITE = AttackGroup("review")
DIRECTORY: Final = "agentbox-attack"
OBJECTS: Final = f"{DIRECTORY}-objects"
"""A repository in the workspace, for the duration of the case."""
NO_NEXT_RUN: Final = "no next life"
NAME: Final = "\x1b[2Jname"
PLANTED: Final = (".git", "link", "up", "fifo")
"""Entries of DIRECTORY that must never be applied; there are also two plain files, one
named NAME.
"""


@SUITE.case(
    "workspace",
    "writes the operator's own workspace, its hooks and its git configuration",
    {"EACCES": "landlock"},
    tests=("tests/api/test_reviews.py::test_side_by_side",),
)
def _workspace(facts: TargetInfo) -> str:
    _require_branch(facts)
    folders = [
        path for path in (facts.workspace, f"{facts.workspace}/.git") if os.path.lexists(path)
    ]
    return worst(
        [
            *(run_attempt(create_file, f"{path}/planted") for path in folders),
            run_attempt(os.listdir, facts.workspace),
        ]
    )


@SUITE.case(
    "planted",
    "leaves links to the outside, hooks, git configuration, a pipe, a setuid bit "
    "and a name that clears the screen in its branch",
    {"left out": "branch"},
    isolated=True,
    tests=("tests/unit/agents/review/test_comparing.py::test_what_is_never_taken",),
)
def _planted(facts: TargetInfo) -> str:
    """The runner checks what would be applied, and discards it."""
    _require_branch(facts)
    os.makedirs(f"{DIRECTORY}/.git/hooks")
    for name, text in (
        (".git/hooks/post-checkout", "#!/bin/sh\n"),
        (".git/config", "[core]\nfsmonitor = x\n"),
        (NAME, "x"),
        ("plain", "x"),
    ):
        with open(f"{DIRECTORY}/{name}", "w", encoding="utf-8") as stream:
            stream.write(text)
    os.symlink("/etc", f"{DIRECTORY}/link")
    os.symlink("../../../../../../etc/passwd", f"{DIRECTORY}/up")
    os.mkfifo(f"{DIRECTORY}/fifo")
    with suppress(OSError):  # refused by the reaper; the review is checked anyway
        os.chmod(f"{DIRECTORY}/plain", 0o4755)
    return "planted"


@SUITE.case(
    "planted-objects",
    "replaces git objects that another agent borrows by a link to the box's secrets "
    "before its restart",
    {NO_NEXT_RUN: "landlock"},
    isolated=True,
    tests=("tests/unit/agents/test_planted_links.py::test_borrowed_objects_are_no_link",),
    since=2,
)
def _planted_objects(facts: TargetInfo) -> str:
    """One step per call, by an agent that writes the workspace itself; the runner checks what the
    other one gets.
    """
    git = f"{facts.workspace}/{OBJECTS}/.git"
    if not os.path.lexists(git):
        for name in ("objects", "refs"):
            os.makedirs(f"{git}/{name}")
        with open(f"{git}/HEAD", "w", encoding="utf-8") as stream:
            stream.write("ref: refs/heads/main\n")
        return "made"
    if not os.path.islink(f"{git}/objects"):
        os.rmdir(f"{git}/objects")
        os.symlink(os.path.dirname(in_same_directory(facts.secrets)[0]), f"{git}/objects")
        return "planted"
    shutil.rmtree(f"{facts.workspace}/{OBJECTS}")
    return "removed"


def in_same_directory(paths: tuple[str, ...]) -> tuple[str, ...]:
    """The paths in the directory with most of them. Raises TargetMissing if there are none."""
    if not paths:
        raise TargetMissing("no secret as a target")
    directories = [os.path.dirname(path) for path in paths]
    commonest = max(directories, key=directories.count)
    return tuple(
        path for path, directory in zip(paths, directories, strict=True) if directory == commonest
    )


def _require_branch(facts: TargetInfo) -> None:
    """Raises TargetMissing for an agent that works in the workspace itself, as set in
    the manifest.
    """
    if not facts.workspace or os.path.realpath(os.getcwd()) == os.path.realpath(facts.workspace):
        raise TargetMissing("off: this agent has no branch")

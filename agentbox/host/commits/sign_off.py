"""Applies the commits again as the operator's, with a line `Signed-off-by`: `git am` in a directory
of the quarantine."""

from __future__ import annotations

import os
from pathlib import Path

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.commits.host_git import GitRefused, HostGit
from agentbox.host.commits.quarantine import Quarantine

_SIGNED = "refs/heads/signed"


def sign_off(
    quarantine: Quarantine, repository: HostGit, patches: Path, *, tip: str, start: str
) -> str:
    """The last of the new commits, whose tree is that of `tip`. Raises AgentboxError."""
    name, email = (_setting(repository, key) for key in ("user.name", "user.email"))
    tree = quarantine.directory / "tree"
    tree.mkdir()
    settings = {
        "core.bare": "false",
        "core.autocrlf": "false",
        "core.symlinks": "true",
        "core.fileMode": "true",
        "user.name": name,
        "user.email": email,
    }
    git = HostGit(
        *(word for item in settings.items() for word in ("-c", "=".join(item))),
        f"--git-dir={quarantine.git_dir}",
        f"--work-tree={tree}",
        *("-C", str(tree)),
        env={
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_ATTR_NOSYSTEM": "1",
        },
    )
    try:
        git.run("symbolic-ref", "HEAD", _SIGNED)
        if start:
            git.run("update-ref", _SIGNED, start)
            git.run("read-tree", start)
            git.run("checkout-index", "--all", "--quiet")
            git.run("update-index", "-q", "--refresh")
        with patches.open("rb") as stream:
            git.run(
                *("am", "--quiet", "--signoff", "--keep-non-patch", "--empty=keep"),
                *("--patch-format=mboxrd", "--no-gpg-sign", "--no-3way"),
                stdin=stream,
            )
        signed = git.run("rev-parse", "--verify", _SIGNED)
        applied, made = (_history(git, end, start) for end in (signed, tip))
    except GitRefused as error:
        raise AgentboxError(
            f"cannot sign off the commits: the patches do not apply: {error}",
            "Take the commits as the agent made them, without --signoff.",
        ) from error
    if applied != made:
        raise AgentboxError(
            "cannot sign off the commits: tip-differs: the patches give other commits",
            "Take the commits as the agent made them, without --signoff.",
        )
    return signed


def _history(git: HostGit, end: str, start: str) -> str:
    """Tree, author and time of each commit: patches may carry others in their messages."""
    since = [f"^{start}"] if start else []
    return git.run("log", "--reverse", "--format=%T %an <%ae> %at", end, *since)


def _setting(repository: HostGit, key: str) -> str:
    try:
        value = repository.run("config", "--get", key)
    except GitRefused:
        value = ""
    if not value:
        raise AgentboxError(
            f"cannot sign off the commits: {key} is not set",
            f"Set it: git config --global {key} …",
            exit_code=ExitCode.USAGE,
        )
    return value

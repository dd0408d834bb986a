"""`agentbox completion` in real shells, with the names of a real box."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from commandline import agentbox, command
from skipping import machine_lacks
from support.api_box import ApiBox

from agentbox.client import BoxClient
from agentbox.core.paths import CHECKOUT

# Prints the candidates for the words before the cursor, of which the last may be incomplete.
BASH = """
source {script}
COMP_WORDS=({words}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
_agentbox
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
# `compadd` and `_files` work in the line editor only; the first offers what begins like the word.
ZSH = """
compdef() {{ : }}
compadd() {{ shift; print -rl -- ${{(M)@:#${{words[CURRENT]}}*}} }}
_files() {{ print -r -- files }}
source {script}
words=({words}); CURRENT=$#words
_agentbox
"""
FISH = "source {script}; complete -C {line}"
Complete = Callable[..., list[str]]


@pytest.fixture(scope="module", params=["bash", "zsh", "fish"])
def complete(
    box: ApiBox, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Complete:
    """The candidates of a line, by the shell; a line begins with the program."""
    shell = request.param
    if shutil.which(shell) is None:
        machine_lacks(shell)
    folder = tmp_path_factory.mktemp(shell)
    program, script = folder / "agentbox", folder / f"completion.{shell}"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(command(box))} "$@"\n')
    program.chmod(0o755)
    printed = agentbox(box, "completion", shell)
    assert printed.returncode == 0
    script.write_bytes(printed.stdout)

    def run(*words: str) -> list[str]:
        given = shlex.join([str(program), *words])
        code = {
            "bash": BASH.format(script=script, words=given),
            "zsh": ZSH.format(script=script, words=given),
            "fish": FISH.format(script=script, line=shlex.quote(given)),
        }[shell]
        if words[-1] == "" and shell == "fish":
            code = FISH.format(
                script=script, line=shlex.quote(shlex.join([str(program), *words[:-1]]) + " ")
            )
        options = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
        done = subprocess.run(
            [shell, *options, "-c", code], capture_output=True, text=True, check=False, timeout=60,
            cwd=folder, env={**os.environ, "HOME": str(folder), "PYTHONPATH": str(CHECKOUT)},
        )  # fmt: skip
        assert "Traceback" not in done.stderr
        return sorted(line.split("\t")[0] for line in done.stdout.splitlines() if line)

    return run


def test_verbs_and_flags(complete: Complete) -> None:
    """Of the program, of a group, of a command; after flags with a value and without."""
    assert complete("be") == ["bead", "bench"]
    assert complete("journal", "s") == ["search", "show", "stats"]
    assert complete("--manifest", "bead", "bead", "re") == ["ready", "release"]
    assert complete("--json", "bead", "list", "--st") == ["--status"]
    assert complete("memory", "put", "--t") == ["--text", "--ttl"]
    assert complete("nonsense", "x", "--") != ["--status"]


def test_names_of_a_box(complete: Complete, client: BoxClient) -> None:
    """Ids, paths and keys; what a shell would read as more than a word is left out."""
    bead, _ = client.beads.create_epic("completed")
    client.pods.write("names/plain.txt", b"")
    client.pods.write("names/$(touch pwned);x", b"")
    client.pods.write("names/two words", b"")
    client.memory.store("a-key", 1)
    client.memory.store("a`key", 1)
    assert complete("bead", "show", bead.id[:20]) == [bead.id]
    assert complete("pod", "get", "names/") == ["names/plain.txt"]
    assert complete("memory", "rm", "a") == ["a-key"]
    assert complete("bead", "create", "") == complete("bead", "list", "--status", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_lines_of_the_page(box: ApiBox, tmp_path: Path, shell: str) -> None:
    """Each shell knows how to complete the command afterwards."""
    if shutil.which(shell) is None:
        machine_lacks(shell)
    page = (CHECKOUT / "docs/howto/complete-the-command-line.md").read_text()
    (lines,) = re.findall(rf"^```{shell}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    program = tmp_path / "agentbox"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(command(box))} "$@"\n')
    program.chmod(0o755)
    told = {"bash": "complete -p agentbox", "zsh": "print $_comps[agentbox]", "fish": "complete"}
    done = subprocess.run(
        [shell, "-c", f"{lines}\n{told[shell]}"], capture_output=True, text=True, check=True,
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path), "PYTHONPATH": str(CHECKOUT)},
    )  # fmt: skip
    assert "agentbox" in done.stdout


@pytest.mark.parametrize(
    "kind",
    ["beads", "agents", "tasks", "reviews", "approvals", "sandboxes", "pods", "keys", "tokens"],
)
def test_every_kind_is_asked_for(box: ApiBox, client: BoxClient, kind: str) -> None:
    """What a list of that kind shows."""
    client.pods.write("kind", b"")
    client.memory.store("kind", 1)
    client.beads.create_epic("kind")
    if not list(client.list_tasks().items):
        client.submit_task({"name": "t", "argv": ["true"], "profile": "sandboxed"})
        client.tokens.create("kind", scopes=["beads:read"])
        client.sandboxes.create("kind")
    done = agentbox(box, "completion", "ids", kind)
    assert (done.returncode, done.stderr) == (0, b"")
    if kind not in ("reviews", "approvals"):
        assert done.stdout.splitlines()


def test_errors_and_slow_boxes_print_nothing(tmp_path: Path) -> None:
    """No box, no manifest, a path that no URL has."""
    for manifest in (CHECKOUT / "agentbox.toml", tmp_path / "absent.toml"):
        done = subprocess.run(
            [sys.executable, "-m", "agentbox", "--manifest", str(manifest), "completion", "ids", "pods", "../"],
            capture_output=True, cwd=CHECKOUT, check=False,
            env={**os.environ, "AGENTBOX_STATE_DIR": str(tmp_path)},
        )  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")

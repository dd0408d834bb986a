"""Bytecode for a tree: valid regardless of time stamps, and reproducible."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from os import cpu_count
from pathlib import Path

from agentbox.core.errors import AgentboxError
from agentbox.host.image.tree.assemble import Tree
from agentbox.host.image.tree.entry import TreeEntry
from agentbox.host.image.tree.wheel import VENV

_ROOTS = ("usr/lib/python3", f"{VENV}/lib/python3")


def add_bytecode(tree: Tree, interpreter: list[str]) -> None:
    """Compiles every module of the tree with `interpreter`; bytecode belongs to the owner of its
    source.

    One process per owner: modules compiled earlier in a process affect the bytecode through
    reference flags of `marshal`. Raises AgentboxError with the owner whose source does not compile.
    """
    sources = sorted(
        (e for e in tree.entries if _is_module(e)), key=lambda e: (e.owner, e.path.encode())
    )
    owned = [
        (owner, [e.path for e in group]) for owner, group in groupby(sources, key=lambda e: e.owner)
    ]
    with ThreadPoolExecutor(cpu_count()) as pool:
        for _ in pool.map(lambda job: _compile(tree.root, interpreter, *job), owned):
            pass
    for owner, paths in owned:
        for path in paths:
            tree.adopt(_bytecode_path(path), owner)


def _is_module(entry: TreeEntry) -> bool:
    return entry.type == "file" and entry.path.endswith(".py") and entry.path.startswith(_ROOTS)


def _compile(root: Path, interpreter: list[str], owner: str, paths: list[str]) -> None:
    # Without column numbers of instructions: they only improve tracebacks and cost memory in every
    # program.
    command = [*interpreter, "-s", "-P", "-B", "-X", "no_debug_ranges", "-m", "compileall", "-q"]
    done = subprocess.run(
        [*command, "--invalidation-mode", "unchecked-hash", "-s", str(root), "-p", "/", "-i", "-"],
        input="".join(f"{root / path}\n" for path in paths),
        env={"PYTHONHASHSEED": "0", "LANG": "C.UTF-8"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise AgentboxError(f"cannot compile {owner}: {done.stdout.strip()}")


def _bytecode_path(path: str) -> str:
    directory, _, name = path.rpartition("/")
    return f"{directory}/__pycache__/{name.removesuffix('.py')}.{sys.implementation.cache_tag}.pyc"

"""Adds the package itself to the tree: modules, data, entry points and the metadata of an
installer.
"""

import ast
import base64
import tomllib
from collections.abc import Collection
from pathlib import Path
from typing import Any

from agentbox.core.errors import AgentboxError
from agentbox.host.image.tree.assemble import Tree
from agentbox.host.image.tree.wheel import PYTHON, VENV, site_packages

_OWNER = "source:agentbox"
_SHARE = "opt/agentbox/share"
_IGNORED = ("__pycache__", ".pyc")
# The operator's commands and shared test code: no program of a box imports them (.importlinter).
_HOST_ONLY = ("__main__.py", "host")
_SCRIPT = """#!{python}
import sys

from {module} import {function}

sys.exit({function}())
"""


def add_application(tree: Tree, source: Path, python: str) -> None:
    """`source` has `agentbox/`, `config/`, `schema/` and `pyproject.toml`."""
    site = site_packages(python)
    _copy_tree(tree, source / "agentbox", f"{site}/agentbox", excluded=_HOST_ONLY)
    _copy_tree(tree, source / "schema", f"{_SHARE}/schema")
    for path in sorted((source / "config").iterdir()):
        target = "etc" if path.name == "etc" else f"{_SHARE}/config/{path.name}"
        if path.is_file():
            tree.copy(target, path, _OWNER)
        else:
            _copy_tree(tree, path, target)
    _add_metadata(tree, source, site)


def _copy_tree(tree: Tree, directory: Path, prefix: str, excluded: Collection[str] = ()) -> None:
    for path in sorted(directory.rglob("*")):
        relative = path.relative_to(directory)
        ignored = (
            any(marker in path.as_posix() for marker in _IGNORED) or relative.parts[0] in excluded
        )
        if path.is_file() and not ignored:
            tree.copy(f"{prefix}/{relative.as_posix()}", path, _OWNER)


def version_of(source: Path) -> str:
    """Return `__version__` as written in the package. Raises AgentboxError if it is not a plain
    string.
    """
    module = ast.parse((source / "agentbox/__init__.py").read_text())
    for node in module.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__version__":
            return str(ast.literal_eval(node.value))
    raise AgentboxError(
        "cannot determine the version: agentbox/__init__.py does not assign __version__"
    )


def _add_metadata(tree: Tree, source: Path, site: str) -> None:
    project = tomllib.loads((source / "pyproject.toml").read_text())["project"]
    version = version_of(source)
    info = f"{site}/{project['name']}-{version}.dist-info"
    scripts = {
        name: target
        for name, target in project["scripts"].items()
        if target.split(".")[1] not in _HOST_ONLY
    }
    files = {
        f"{info}/METADATA": _metadata(project, version),
        f"{info}/WHEEL": (
            "Wheel-Version: 1.0\nGenerator: agentbox\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        ),
        f"{info}/INSTALLER": "agentbox\n",
        f"{info}/entry_points.txt": _entry_points(scripts),
    }
    for path, text in files.items():
        tree.file(path, text.encode(), _OWNER)
    for name, target in scripts.items():
        module, function = target.split(":")
        script = _SCRIPT.format(python=PYTHON, module=module, function=function)
        tree.file(f"{VENV}/bin/{name}", script.encode(), _OWNER, 0o755)
    tree.file(f"{info}/RECORD", _record(tree, site, f"{info}/RECORD"), _OWNER)


def _metadata(project: dict[str, Any], version: str) -> str:
    dependencies = "".join(
        f"Requires-Dist: {dependency}\n" for dependency in project["dependencies"]
    )
    return (
        f"Metadata-Version: 2.4\nName: {project['name']}\nVersion: {version}\nSummary: "
        f"{project['description']}\n"
        f"License-Expression: {project['license']}\nRequires-Python: "
        f"{project['requires-python']}\n{dependencies}"
    )


def _entry_points(scripts: dict[str, str]) -> str:
    return "[console_scripts]\n" + "".join(
        f"{name} = {target}\n" for name, target in sorted(scripts.items())
    )


def _record(tree: Tree, site: str, record_path: str) -> bytes:
    lines = []
    for entry in sorted(tree.entries, key=lambda e: e.path.encode()):
        relative = entry.path.removeprefix(site + "/")
        if entry.type == "file" and relative != entry.path:
            code = base64.urlsafe_b64encode(bytes.fromhex(entry.sha256)).rstrip(b"=").decode()
            lines.append(f"{relative},sha256={code},{entry.size}\n")
    lines.append(f"{record_path.removeprefix(site + '/')},,\n")
    return "".join(lines).encode()

"""Installs wheels into the virtual environment of the tree, by the `installer` library (PEP 427,
660).
"""

import shutil
import tempfile
from pathlib import Path
from zipfile import ZipFile

from agentbox.host.image.tree.assemble import Tree

VENV = "opt/agentbox/venv"
PYTHON = f"/{VENV}/bin/python"


def site_packages(python: str) -> str:
    """Return the directory of pure and platform packages alike, below the root."""
    return f"{VENV}/lib/python{python}/site-packages"


def add_wheel(
    tree: Tree, name: str, file: Path, python: str, *, without_tests: bool = False
) -> None:
    """Installs one wheel. Raises AgentboxError if two wheels add different content at a path."""
    with tempfile.TemporaryDirectory() as scratch:
        _install(file, Path(scratch), python)
        for suite in [
            path for path in Path(scratch).rglob("tests") if without_tests and path.is_dir()
        ]:
            if suite.exists():  # one may be inside another
                shutil.rmtree(suite)
        add_tree(tree, Path(scratch), f"wheel:{name}")


def add_tree(tree: Tree, directory: Path, owner: str) -> None:
    """Copies a directory into the tree, path by path."""
    for path in sorted(directory.rglob("*")):
        relative = path.relative_to(directory).as_posix()
        if path.is_symlink():
            tree.link(relative, str(path.readlink()), owner)
        elif path.is_dir():
            tree.directory(relative)
        else:
            tree.copy(relative, path, owner)


def _install(file: Path, root: Path, python: str) -> None:
    from installer import install
    from installer.destinations import SchemeDictionaryDestination
    from installer.sources import WheelFile

    site = f"/{site_packages(python)}"
    scheme = {
        "purelib": site,
        "platlib": site,
        "scripts": f"/{VENV}/bin",
        "data": f"/{VENV}",
        "headers": f"/{VENV}/include/site/python{python}",
    }
    destination = SchemeDictionaryDestination(
        scheme, interpreter=PYTHON, script_kind="posix", destdir=str(root)
    )
    with ZipFile(file) as archive:
        archive.filename = file.name.partition("-")[
            2
        ]  # the library checks the name, the store put a hash before it
        install(
            source=WheelFile(archive),
            destination=destination,
            additional_metadata={"INSTALLER": b"agentbox"},
        )


def add_environment(tree: Tree, python: str, version: str) -> None:
    """Makes the directory a virtual environment of the image's interpreter."""
    owner = "generated:venv"
    tree.link(f"{VENV}/bin/python", f"/usr/bin/python{python}", owner)
    settings = f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {version}\n"
    tree.file(f"{VENV}/pyvenv.cfg", settings.encode(), owner)

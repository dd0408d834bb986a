"""Skills in the prefix of a box, and `agentbox-ctl` for its agents, as an image has them."""

import shutil
import subprocess
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from agentbox.core.paths import CHECKOUT, Paths
from agentbox.manifest.skills.corpus import load_skills, shipped_folders
from agentbox.plan.render.skills import skill_catalogue

_CTL: Final = """#!/usr/bin/python3 -I
import sys

sys.path.insert(0, "{library}")
from agentbox.client.ctl import main

sys.exit(main())
"""


def install_skills(
    paths: Paths, folders: Mapping[str, Path] | None = None, names: Collection[str] = ()
) -> None:
    """Writes these skills (default: all that agentbox brings) and their catalogue."""
    places = shipped_folders() if folders is None else folders
    skills = load_skills(names or places, places)
    paths.share.mkdir(parents=True, exist_ok=True)
    paths.skill_catalogue.write_bytes(skill_catalogue(skills))
    for skill in skills:
        for file in skill.files:
            target = paths.skills / skill.name / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.data)
            target.chmod(0o555 if file.executable else 0o444)


def install_ctl(paths: Paths) -> Path:
    """Puts the command and the modules that it needs where agents may read; returns its folder."""
    library, programs = paths.app / "library", paths.app / "bin"
    for name in ("client", "core"):
        shutil.copytree(
            CHECKOUT / "agentbox" / name,
            library / "agentbox" / name,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    shutil.copy(CHECKOUT / "agentbox/__init__.py", library / "agentbox")
    programs.mkdir()
    command = programs / "agentbox-ctl"
    command.write_text(_CTL.format(library=library))
    command.chmod(0o755)
    return programs


SUMS: Final = '''"""Sums of orders."""


def total(items):
    """The sum of numbers."""
    if any(isinstance(item, str) for item in items):
        raise TypeError("GREETING_MISSING: numbers only")
    return sum(items)
'''
TEST: Final = """import unittest

from sums import total


class TotalTest(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total([1, 2]), 3)


if __name__ == "__main__":
    unittest.main()
"""
MAKEFILE: Final = """all: report.txt
.PHONY: all test
test:
\tpython3 -m unittest -q tests.test_sums
report.txt: data/orders.csv
\tcut -d, -f2 data/orders.csv | sort | uniq -c > report.txt
"""
ORDERS: Final = "id,customer,amount\n1,ada,12.5\n2,bob,7\n3,ada,30\n"
LOG: Final = "".join(
    f"2026-01-02T03:{minute:02}:00 {level} request {minute} took {minute * 7} ms\n"
    for minute, level in enumerate(["INFO"] * 8 + ["ERROR"] * 2 + ["INFO"] * 5)
)
JSON: Final = (
    '{"items": [{"title": "one", "state": "open", "price": {"net": 10}},'
    ' {"title": "two", "state": "closed", "price": {"net": 20}}]}\n'
)


GUIDE: Final = "# Guide\n\n```sh\npython3 -c 'import sums; print(sums.total([1, 2]))'\n```\n"


def sample_repository(directory: Path) -> dict[str, str]:
    """A small project with a history: main, `topic` beside it, and `work` on top, checked out.
    Returns the names that blocks of skills have for its parts."""

    def git(*words: str) -> str:
        who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        done = subprocess.run(
            ["git", *who, *words], cwd=directory, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def commit(message: str, files: Mapping[str, str]) -> str:
        for name, text in files.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        git("add", "-A")
        git("commit", "-q", "-m", message)
        return git("rev-parse", "HEAD")

    def described(words: str) -> dict[str, str]:
        return {"sums.py": SUMS.replace("of numbers", words)}

    directory.mkdir(parents=True, exist_ok=True)
    git("init", "-q", "-b", "main")
    readme = "# Sums\n\nSee [the guide](docs/guide.md).\n"
    commit("Start", {"README.md": readme, ".gitignore": "report.txt\n__pycache__/\n"})
    tests = {"tests/__init__.py": "", "tests/test_sums.py": TEST}
    good = commit("Sums of orders", {"sums.py": SUMS, "docs/guide.md": GUIDE, **tests})
    data = {"data/orders.csv": ORDERS, "data/orders.json": JSON, "data/app.log": LOG}
    commit("Data and a build", {"Makefile": MAKEFILE, **data})
    git("branch", "topic")
    git("checkout", "-q", "-b", "work")
    last = commit("The total says what it is", described("of all numbers"))
    git("checkout", "-q", "topic")
    commit("The total is rounded", described("of numbers, rounded"))
    git("checkout", "-q", "work")
    with (directory / "sums.py").open("a") as file:
        file.write("\n# a change that is not committed\n")
    return {"FILE": "sums.py", "TEXT": "GREETING_MISSING", "COMMIT": last, "GOOD": good}

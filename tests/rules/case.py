"""A case of the rules: a manifest, its options in the leading comments, a lock (`.lock`, for Nix `.flake`), what must be found."""

import itertools
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from catalogue import FEATURES

from agentbox.manifest.load import load
from agentbox.manifest.rules.engine import ValidationReport, run_rules
from agentbox.manifest.rules.lock_input import MISSING, LockInput, read_lock

FOLDER = Path(__file__).parent / "cases"


@dataclass(frozen=True)
class Case:
    """`trips-*` lists its own code, `clean-*` never does."""

    path: Path

    @property
    def code(self) -> str:
        return self.path.parent.name

    @property
    def trips(self) -> bool:
        return self.path.name.startswith("trips-")

    @cached_property
    def expected(self) -> list[str]:
        return self.path.with_suffix(".expect").read_text().splitlines()

    @cached_property
    def options(self) -> list[str]:
        lines = self.path.read_text().splitlines()
        return [line.removeprefix("# ") for line in lines if line.startswith("# ")]

    @cached_property
    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of `agentbox.manifest.rules.engine.run`."""
        words = [
            word for line in self.options if line.startswith("args: ") for word in line.split()[1:]
        ]
        found: dict[str, Any] = {"features": FEATURES}
        if "--check-env" in words:
            pairs = (
                line.removeprefix("env: ").split("=", 1)
                for line in self.options
                if line.startswith("env: ")
            )
            found["environment"] = dict(pairs)
        found["systems"] = [
            after for word, after in itertools.pairwise(words) if word == "--system"
        ]
        beside = self.path.with_suffix(".lock")
        if beside.exists():
            found["lock"] = read_lock(beside)
        elif "lock: missing" in self.options:
            found["lock"] = MISSING
        if (flake := self.path.with_suffix(".flake")).exists():
            found["lock"] = LockInput(present=False, flake=json.loads(flake.read_text()))
        return found

    @property
    def environment(self) -> dict[str, str]:
        """The variables that the case sets."""
        return dict(self.arguments.get("environment", {}))

    def report(self) -> ValidationReport:
        return run_rules(load(self.path), **self.arguments)

    def found(self) -> list[str]:
        """One line a finding, `CODE KEY LINE:COL`, sorted.

        What a release does not serve yet (E606) says nothing about a rule, and changes with every release: only the cases
        of E606 list it.
        """
        findings = (
            found for found in self.report().findings if found.code != "E606" or self.code == "E606"
        )
        return sorted(f"{f.code} {f.key or '-'} {f.line}:{f.column}" for f in findings)


def cases() -> list[Case]:
    """Every case."""
    return [Case(path) for path in sorted(FOLDER.glob("*/*.toml"))]

"""A case of a rule: a manifest with its options in leading comments, maybe a lock, and the findings
that it must have."""

import itertools
import json
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from catalogue import FEATURES

from agentbox.manifest.load import parse
from agentbox.manifest.rules.engine import ValidationReport, run_rules
from agentbox.manifest.rules.unvalidated_lock import MISSING, UnvalidatedLock

FOLDER = Path(__file__).parent / "cases"


@dataclass(frozen=True)
class Case:
    """One `[[case]]` of `cases/<code>.toml`: `trips-*` lists its own code, `clean-*` never does.
    `lock` and `flake` are the texts of agentbox.lock and flake.lock."""

    code: str
    name: str
    manifest: str
    expect: tuple[str, ...]
    lock: str | None = None
    flake: str | None = None

    @property
    def id(self) -> str:
        return f"{self.code}-{self.name}"

    @property
    def trips(self) -> bool:
        return self.name.startswith("trips-")

    @cached_property
    def options(self) -> list[str]:
        lines = self.manifest.splitlines()
        return [line.removeprefix("# ") for line in lines if line.startswith("# ")]

    @cached_property
    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of `agentbox.manifest.rules.engine.run_rules`."""
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
        if self.lock is not None:
            found["lock"] = UnvalidatedLock(present=True, tables=tomllib.loads(self.lock))
        elif "lock: missing" in self.options:
            found["lock"] = MISSING
        if self.flake is not None:
            found["lock"] = UnvalidatedLock(present=False, flake=json.loads(self.flake))
        return found

    @property
    def environment(self) -> dict[str, str]:
        """The variables that the case sets."""
        return dict(self.arguments.get("environment", {}))

    def report(self) -> ValidationReport:
        return run_rules(parse(self.manifest.encode(), f"{self.name}.toml"), **self.arguments)

    def found(self) -> list[str]:
        """One line a finding, `CODE KEY LINE:COL`, sorted.

        What a release does not serve yet (E606) says nothing about a rule, and changes with every release: only the cases
        of E606 list it.
        """
        findings = (
            found for found in self.report().findings if found.code != "E606" or self.code == "E606"
        )
        return sorted(f"{f.code} {f.key or '-'} {f.line}:{f.column}" for f in findings)


def cases(code: str = "*") -> list[Case]:
    """Every case, or those of one rule."""
    return [
        Case(code=path.stem.upper(), **{**case, "expect": tuple(case["expect"])})
        for path in sorted(FOLDER.glob(f"{code.lower()}.toml"))
        for case in tomllib.loads(path.read_text(encoding="utf-8"))["case"]
    ]

"""`agentbox config validate`: inputs and printing of the report."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.paths import HostPaths, environment
from agentbox.host.cli.stdio import supports_escapes
from agentbox.host.engines.secrets import read_env_file, read_secret, stored_names
from agentbox.host.engines.state import BoxState
from agentbox.manifest.features.loader import load_features
from agentbox.manifest.findings import Finding
from agentbox.manifest.load import MAX_BYTES, Manifest, load, parse
from agentbox.manifest.rules.engine import RuleBug, ValidationReport, run_rules
from agentbox.manifest.rules.unvalidated_lock import LOCK_FILE, UnvalidatedLock, read_lock

_STDIN: Final = "-"
_COLORS: Final = {"error": "31", "warning": "33", "info": "36"}


@dataclass(frozen=True)
class ValidationRun:
    """A manifest file, or stdin if `path` is `-`; lock and `.env` are expected beside the file."""

    path: Path
    systems: tuple[str, ...] = ()
    check_env: bool = False

    @cached_property
    def manifest(self) -> Manifest:
        """The loaded manifest. Raises AgentboxError (exit 2) when it cannot be read."""
        if str(self.path) == _STDIN:
            return parse(sys.stdin.buffer.read(MAX_BYTES + 1), "<stdin>")
        return load(self.path)

    def report(self) -> ValidationReport:
        """Runs all rules. When a rule raises, prints the traceback and raises AgentboxError (exit
        2)."""
        try:
            return run_rules(
                self.manifest,
                features=load_features(),
                lock=self._lock(),
                environment=self._environment(),
                systems=self.systems,
            )
        except RuleBug as bug:
            import traceback

            traceback.print_exception(bug)
            raise AgentboxError(
                f"cannot validate {self.path}: {bug}",
                "This is a bug of agentbox.",
                exit_code=ExitCode.USAGE,
            ) from bug

    def _lock(self) -> UnvalidatedLock | None:
        return None if str(self.path) == _STDIN else read_lock(self.path.parent / LOCK_FILE)

    def _environment(self) -> Mapping[str, str] | None:
        if not self.check_env:
            return None
        env_file = {} if str(self.path) == _STDIN else read_env_file(self.path.parent / ".env")
        return {**self._stored_secrets(), **env_file, **environment()}

    def _stored_secrets(self) -> Mapping[str, str]:
        """Secrets stored by `secrets set` for this box; none when the manifest is invalid."""
        if (model := self.manifest.effective) is None:
            return {}
        directory = BoxState(HostPaths.for_this_user().box(model.meta.name)).secrets_dir
        return {name: read_secret(directory, name) for name in stored_names(directory)}

    def print_json(self, report: ValidationReport) -> None:
        """Prints one JSON document."""
        print(json.dumps(report.to_json(self.manifest.name), indent=2, ensure_ascii=False))

    def print_sarif(self, report: ValidationReport) -> None:
        """Prints one SARIF document."""
        from agentbox.host.cli.sarif import render_sarif

        print(json.dumps(render_sarif(report, self.manifest.name), indent=2, ensure_ascii=False))

    def print_text(
        self, report: ValidationReport, *, strict: bool, quiet: bool, color: bool
    ) -> None:
        """Prints a line and a remedy per finding, then the totals."""
        decisive = ("error", "warning") if strict else ("error",)
        for finding in report.findings:
            if not quiet or finding.severity in decisive:
                print(
                    _text(self.manifest.name, finding, color=color and supports_escapes(sys.stdout))
                )
        if not quiet:
            for skipped in report.not_evaluated:
                entry = f" for {skipped.entry}" if skipped.entry else ""
                print(f"    {skipped.code}{entry} was not evaluated: fix {skipped.because} first")
            counts = report.counts
            print(f"{counts['error']} errors, {counts['warning']} warnings, {counts['info']} info")


def _text(name: str, finding: Finding, *, color: bool) -> str:
    line = f"{name}:{finding}"
    if color:
        label = f"{finding.severity} {finding.code}"
        line = line.replace(label, f"\x1b[{_COLORS[finding.severity]}m{label}\x1b[0m", 1)
    return f"{line}\n    {finding.remedy}"

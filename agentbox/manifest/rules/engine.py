"""Runs all rules, whatever others find. Only invalid TOML ends a run early."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from agentbox.manifest.features.loader import enabled_features
from agentbox.manifest.features.model import Feature
from agentbox.manifest.findings import Finding
from agentbox.manifest.load import Manifest
from agentbox.manifest.rules.context import InvalidValue, RuleContext, RuleInput
from agentbox.manifest.rules.discovery import Rule, discover
from agentbox.manifest.rules.unvalidated_lock import UnvalidatedLock


class RuleBug(RuntimeError):
    """A rule raised an exception: exit code 2 with its code and the traceback."""


@dataclass(frozen=True)
class NotEvaluated:
    """A rule, or one entry of its map, that could not run because the key `because` is invalid."""

    code: str
    because: str
    entry: str = ""

    def to_json(self) -> dict[str, str]:
        """Plain data; `entry` only if set."""
        return {
            "code": self.code,
            "because": self.because,
            **({"entry": self.entry} if self.entry else {}),
        }


@dataclass(frozen=True)
class ValidationReport:
    """All findings, sorted by line, column, code."""

    findings: tuple[Finding, ...]
    not_evaluated: tuple[NotEvaluated, ...] = ()
    rules_run: int = 0

    @property
    def counts(self) -> dict[str, int]:
        """Findings by severity."""
        severities = [finding.severity for finding in self.findings]
        return {severity: severities.count(severity) for severity in ("error", "warning", "info")}

    @property
    def valid(self) -> bool:
        """True without an error."""
        return self.counts["error"] == 0

    def to_json(self, path: str) -> dict[str, Any]:
        """The output of `agentbox config validate --format json`."""
        return {
            "path": path,
            "valid": self.valid,
            "counts": self.counts,
            "findings": [finding.to_json() for finding in self.findings],
            "not_evaluated": [item.to_json() for item in self.not_evaluated],
            "rules_run": self.rules_run,
        }


def run_rules(
    manifest: Manifest,
    *,
    features: Mapping[str, Feature],
    lock: UnvalidatedLock | None = None,
    environment: Mapping[str, str] | None = None,
    systems: Iterable[str] = (),
    only_environment: bool = False,
) -> ValidationReport:
    """Runs all rules over a manifest, and includes the schema's findings. `lock` None = not given,
    `MISSING` = no lock exists. `environment` enables the conditions marked [env];
    `only_environment` runs only rules with such a condition. Raises RuleBug if a rule raises.
    """
    if any(finding.code == "E000" for finding in manifest.findings):
        return ValidationReport(manifest.findings)
    inputs = RuleInput(
        manifest, features, enabled_features(manifest, features), lock, environment, tuple(systems)
    )
    rules = [rule for rule in discover().values() if rule.environment or not only_environment]
    first = _Pass(inputs)
    first.run(rule for rule in rules if not rule.last)
    second = _Pass(
        inputs,
        frozenset(finding.key for finding in first.findings if finding.severity == "error"),
    )
    second.run(rule for rule in rules if rule.last)
    findings = sorted((*first.findings, *second.findings), key=lambda finding: finding.order)
    return ValidationReport(tuple(findings), (*first.skipped, *second.skipped), len(rules))


class _Pass:
    def __init__(self, inputs: RuleInput, errors: frozenset[str] = frozenset()) -> None:
        self.inputs = inputs
        self.errors = errors
        self.findings: list[Finding] = []
        self.skipped: list[NotEvaluated] = []

    def run(self, rules: Iterable[Rule]) -> None:
        for rule in rules:
            for context in self.contexts(rule):
                self.apply(rule, context)

    def contexts(self, rule: Rule) -> Iterator[RuleContext]:
        base_context = RuleContext(rule.code, self.inputs, errors=self.errors)
        for table in rule.each:
            if table:
                yield from (
                    replace(base_context, table=table, entry=name)
                    for name in base_context.names(table)
                )
            else:
                yield base_context

    def apply(self, rule: Rule, context: RuleContext) -> None:
        try:
            self.findings += list(rule.check(context))
        except InvalidValue as invalid:
            self.skipped.append(NotEvaluated(rule.code, invalid.key, context.entry))
        except Exception as error:
            raise RuleBug(f"rule {rule.code} raised {type(error).__name__}: {error}") from error

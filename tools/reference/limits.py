"""docs/limits.md, from the registry and from the tests that are marked `limit`."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from agentbox.core.paths import CHECKOUT
from agentbox.policy.limits.limit import Limit
from agentbox.policy.limits.registry import LIMITS, REARM_BELOW, WARN_AT

from reference import COMMAND

TARGET: Final = CHECKOUT / "docs/limits.md"
TESTS: Final = CHECKOUT / "tests/unit"
_MARK: Final = "pytest.mark.limit"
_INTRO: Final = f"""# Limits

<!-- Generated from agentbox/policy/limits/ by `{COMMAND}`. Do not edit. -->

The limits of one agent, what enforces them, and with which delay. Keys are those of agentbox.toml;
`agents.<name>.limits.*` sets a limit for one agent. Crossing {WARN_AT:.0%} is an event
`limit.warning`, once until the use was below {REARM_BELOW:.0%}; ending an agent at a limit is an
event `limit.breached`; a request beyond one is rejected with `QuotaExceeded`. All three have
`limit`, `observed`, `cap` and `config_path`. `agentbox_limit_breached_total{{limit}}` and
`agentbox_limit_warning_total{{limit}}` count them. `GET /v1/agents/{{id}}` has, under `limits`,
each cap and the maximum observed; null if it is not monitored. The last column is the test below
`tests/unit` in which the limit is reached while another agent is not affected.

| Limit | Unit | Key | Held by | At the limit | Bound | Shown by |
|---|---|---|---|---|---|---|
"""


def outputs() -> Mapping[Path, str]:
    """Return the generated file and its text."""
    return {TARGET: page()}


def page() -> str:
    """Return the page. Raises KeyError for a limit without a test."""
    tests = marked_tests()
    return _INTRO + "".join(
        f"| {' | '.join(_row(row, tests[row.name]))} |\n" for row in LIMITS.values()
    )


def marked_tests() -> dict[str, str]:
    """Limit -> the id of the test below `TESTS` that is marked `limit(NAME)` or, for one case of
    a parametrised test, `limit(NAME, case=ID)`.
    """
    return dict(
        row
        for path in sorted(TESTS.rglob("test_*.py"))
        if _MARK in (text := path.read_text(encoding="utf-8"))
        for row in _marks(ast.parse(text), str(path.relative_to(TESTS)))
    )


def _marks(tree: ast.Module, file: str) -> Iterator[tuple[str, str]]:
    for test in ast.walk(tree):
        if not isinstance(test, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for mark in test.decorator_list:
            if isinstance(mark, ast.Call) and ast.unparse(mark.func) == _MARK:
                case = "".join(f"[{ast.literal_eval(word.value)}]" for word in mark.keywords)
                yield ast.literal_eval(mark.args[0]), f"{file}::{test.name}{case}"


def _row(row: Limit, test: str) -> Iterator[str]:
    yield f"`{row.name}`"
    yield row.unit
    yield f"`{row.config_path}`" if row.config_path else f"fixed: {row.fixed:,}"
    yield from (row.enforced_by, row.consequence, row.bound, f"`{test}`")

"""docs/attack.md lists the attacks over a protocol, each with a test that there is."""

import ast

from support.attack_report import TARGET
from support.protocol_attacks import LINES, lines

from agentbox.core.paths import CHECKOUT


def test_the_page_has_them() -> None:
    """As they are generated."""
    assert "\n".join(lines()) in TARGET.read_text()


def test_each_is_tried() -> None:
    """By a test of that name."""
    for _, _, file, test in LINES:
        tree = ast.parse((CHECKOUT / "tests" / file).read_text())
        names = {
            one.name
            for one in ast.walk(tree)
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        assert test in names, f"{file}::{test}"

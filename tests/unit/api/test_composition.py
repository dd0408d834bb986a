"""The order in which the API is built."""

import ast
import inspect
from textwrap import dedent

import pytest

from agentbox.api import app

LATE = """
def build():
    first = make(lambda: second.current)
    second = First()
"""


def late_names(source: str) -> set[str]:
    """Names that a function's lambdas read, but that it binds only after them."""
    body = ast.parse(dedent(source)).body[0]
    lambdas = [node for node in ast.walk(body) if isinstance(node, ast.Lambda)]
    inside = {id(node) for one in lambdas for node in ast.walk(one)}
    bound: dict[str, int] = {}
    for node in ast.walk(body):
        if (
            isinstance(node, ast.Name)
            and isinstance(node.ctx, ast.Store)
            and id(node) not in inside
        ):
            bound[node.id] = min(node.lineno, bound.get(node.id, node.lineno))
    return {
        name.id
        for one in lambdas
        for name in ast.walk(one.body)
        if isinstance(name, ast.Name) and bound.get(name.id, 0) >= one.lineno
    }


@pytest.mark.parametrize(
    "function", [one for _, one in inspect.getmembers(app, inspect.isfunction) if one.__module__ == app.__name__]
)  # fmt: skip
def test_no_lambda_reads_a_name_that_is_bound_later(function) -> None:  # type: ignore[no-untyped-def]
    """What needs something later is a subscription, so that nothing is called half built."""
    assert late_names(inspect.getsource(function)) == set()


def test_such_a_lambda_would_be_found() -> None:
    """By the line of its first binding."""
    assert late_names(LATE) == {"second"}

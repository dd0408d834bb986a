"""Reads a Python file that builds a table from constructors, without running it."""

import ast
from datetime import date
from decimal import Decimal
from typing import Any


def read_calls(source: str, variable: str) -> Any:
    """The value assigned to `variable`: each call `Name(x=1)` as `{"kind": "Name", "x": 1}`, dates
    and decimals as such. Raises ValueError for anything but literals and such calls.
    """
    for node in ast.parse(source).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        if variable in names and isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
            return _value(node.value)
    raise ValueError(f"no variable {variable}")


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_value(item) for item in items]
        case ast.Dict(keys=keys, values=values):
            return {
                _value(key): _value(value) for key, value in zip(keys, values, strict=True) if key
            }
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.Call(func=ast.Name(id="Decimal"), args=[ast.Constant(value=text)]):
            return Decimal(str(text))
        case ast.Call(func=ast.Attribute(attr="date"), args=parts):
            return date(*(_value(part) for part in parts))
        case ast.Attribute(attr=name):
            return name  # a constant of a module, like a time zone
        case ast.Call(func=ast.Name(id=kind) | ast.Attribute(attr=kind), args=args):
            named = {word.arg: _value(word.value) for word in node.keywords if word.arg}
            return {"kind": kind, "args": [_value(arg) for arg in args], **named}
    raise ValueError(f"line {node.lineno}: not a literal")

"""Generated pages are fresh, and the OpenAPI document is what its schema demands."""

import pytest
from jsonschema import Draft202012Validator
from reference.api import COMMAND, outputs

from agentbox.api.openapi import document
from agentbox.contracts.routes.registry import ROUTES


@pytest.mark.parametrize("path", outputs(), ids=lambda path: path.name)
def test_generated_files_are_fresh(path) -> None:  # type: ignore[no-untyped-def]
    """The committed copy equals the table."""
    assert path.exists(), f"missing; run `{COMMAND}`"
    assert path.read_text() == outputs()[path], f"stale; run `{COMMAND}`"


def test_every_row_is_an_operation() -> None:
    """Each route of the API listener is listed once, under its name."""
    found = [op["operationId"] for item in document()["paths"].values() for op in item.values()]
    assert sorted(found) == sorted(route.name for route in ROUTES if route.listener == "api")


def test_every_schema_is_a_json_schema() -> None:
    """Each component is a valid 2020-12 schema, and every reference has its component."""
    schemas = document()["components"]["schemas"]
    assert len(schemas) > 30
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)
    text = str(document())
    for name in {part.split("'")[0] for part in text.split("#/components/schemas/")[1:]}:
        assert name in schemas

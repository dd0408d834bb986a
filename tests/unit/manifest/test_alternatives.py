"""Other values for a key: the schema accepts them, and they differ."""

import tomllib

import pytest
import tomli_w

from agentbox.core.paths import CHECKOUT
from agentbox.manifest.alternatives import alternative_values, with_value
from agentbox.manifest.declarations.key_path import split_names
from agentbox.manifest.keys import effective_values, flatten
from agentbox.manifest.load import load, parse

FULL = CHECKOUT / "tests/rules/full.toml"
VALUES = effective_values(load(FULL))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("path", [path for path in VALUES if path != "meta.schema_version"])
def test_the_first_other_value(path: str) -> None:
    """It differs, it is valid, and a model has it like a manifest with that value."""
    other = next(alternative_values(path, VALUES[path]))
    assert other != VALUES[path]
    document = tomllib.loads(FULL.read_text())
    table = document
    *parents, name = split_names(path)
    for parent in parents:
        table = table.setdefault(parent, {})
    stem, _, kind = name.rpartition("_")
    table.pop(f"{stem}_{'file' if kind == 'env' else 'env'}", None)
    table[name] = other
    written = parse(tomli_w.dumps(document).encode(), "x")
    assert written.findings == ()
    assert (
        dict(flatten(with_value(load(FULL).usable, path, other)))[path]
        == dict(flatten(written.usable))[path]
    )


def test_a_key_that_does_not_exist() -> None:
    """Is a KeyError."""
    with pytest.raises(KeyError):
        alternative_values("api.prot", 1)

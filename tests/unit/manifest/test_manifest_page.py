"""docs/manifest.md is generated."""

from reference.manifest import COMMAND, TARGET, page

from agentbox.manifest.keys import keys


def test_the_page_is_fresh() -> None:
    """The file equals the schema's texts."""
    assert TARGET.read_text() == page(), f"stale: run `{COMMAND}`"


def test_the_page_has_every_key() -> None:
    """One row each."""
    for path in keys():
        assert f"| `{path.rpartition('.')[2]}` |" in page()

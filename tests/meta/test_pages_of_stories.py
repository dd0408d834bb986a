"""The page of errors has the rows of the tests and no others: a row whose test was removed would be
unchecked."""

import re

from told import PAGE, rows_of

from agentbox.core.paths import CHECKOUT


def test_each_row_has_its_story() -> None:
    """Each `told(...)` in the end-to-end tests names rows, with `{…}` for the value of a parameter."""
    sources = "".join(
        path.read_text() for path in sorted((CHECKOUT / "tests/e2e").glob("test_*.py"))
    )
    names = re.findall(r'\btold\(f?"([^"]+)"', sources)
    assert len(names) > 15
    forms = [re.compile(re.sub(r"\\\{[^}]*\\\}", ".+", re.escape(name))) for name in names]
    rows = rows_of(PAGE.read_text())
    assert [row for row in rows if not any(form.fullmatch(row) for form in forms)] == []
    assert [form.pattern for form in forms if not any(form.fullmatch(row) for row in rows)] == []

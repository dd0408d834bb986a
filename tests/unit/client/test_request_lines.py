"""The clients' table of operations equals the contracts' table."""

from request_lines import TARGET, generate


def test_it_is_what_the_table_gives() -> None:
    """`python tools/request_lines.py` writes it."""
    assert TARGET.read_text() == generate(), "run tools/request_lines.py"

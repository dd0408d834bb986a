"""The clients' table of operations equals the contracts' table."""

from client_operations import generate as generate_methods
from request_lines import TARGET, generate


def test_it_is_what_the_table_gives() -> None:
    """`python tools/request_lines.py` writes it."""
    assert TARGET.read_text() == generate(), "run tools/request_lines.py"


def test_the_methods_are_what_the_tables_give() -> None:
    """`python tools/client_operations.py` writes them."""
    for path, text in generate_methods().items():
        assert path.read_text() == text, f"{path.name}: run tools/client_operations.py"

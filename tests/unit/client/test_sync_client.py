"""The synchronous client is written from the asynchronous one."""

from sync_client import generate


def test_it_is_what_the_asynchronous_client_gives() -> None:
    """`python tools/sync_client.py` writes it."""
    for path, text in generate().items():
        assert path.read_text() == text, f"{path.name}: run tools/sync_client.py"

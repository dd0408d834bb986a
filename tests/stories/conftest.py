"""The test in a container builds an image of half a gigabyte: it runs only on request."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--container", action="store_true", help="Also the story in a container.")
    parser.addoption(
        "--record", action="store_true", help="Write its terminal sessions to docs/stories."
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Nothing that was requested is left out."""
    if collection_path.name == "test_in_a_container.py" and not config.getoption(
        "--container", default=False
    ):
        return True
    return None

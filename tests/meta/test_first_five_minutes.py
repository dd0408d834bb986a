"""The image in README.md is drawn from the recording that is stored beside it."""

from pathlib import Path

from draw_recording import rows, svg
from first_five_minutes import CAST, IMAGE
from recording import COLUMNS, Recording

from agentbox.core.paths import CHECKOUT

RECORDING = Recording.read(CAST)


def test_the_image_shows_the_recording() -> None:
    """Refresh: .venv/bin/python tools/first_five_minutes.py --draw"""
    assert IMAGE.read_text() == svg(RECORDING)
    assert f"({IMAGE.relative_to(CHECKOUT)})" in (CHECKOUT / "README.md").read_text()


def test_rows_fit_the_image_and_appear_in_order() -> None:
    """A row beyond the right edge would be cut; a command follows earlier output."""
    drawn = list(rows(RECORDING))
    assert max(len(row) for _, row in drawn) <= COLUMNS
    assert [seconds for seconds, _ in drawn] == sorted(seconds for seconds, _ in drawn)


def test_a_recording_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Line ends and backslashes too."""
    session = Recording("x", ((0.0, "$ printf 'a\\n'\n"), (0.5, "a\nb"), (0.6, "\n")))
    session.write(tmp_path / "x.cast")
    assert Recording.read(tmp_path / "x.cast") == session


def test_the_recording_names_no_path_of_a_machine() -> None:
    """Home and temporary directories are shown as `~`."""
    text = "".join(part for _, part in RECORDING.events)
    assert not [path for path in ("/root", "/home", "/tmp", str(CHECKOUT)) if path in text]

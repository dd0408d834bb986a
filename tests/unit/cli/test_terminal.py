"""Agent output on a terminal and in a file."""

import io
import os
import pty
import tty
from pathlib import Path

import pytest

from agentbox.host.cli.agent_output import EscapingWriter, _active_colors


def piece_of(master: int) -> bytes:
    """Nothing at the end, which is an error of a terminal whose other end is closed."""
    try:
        return os.read(master, 1 << 16)
    except OSError:
        return b""


def on_terminal(*pieces: bytes) -> str:
    """What a real terminal gets to see of these pieces."""
    master, slave = pty.openpty()
    tty.setraw(slave)
    try:
        with os.fdopen(slave, "w", encoding="utf-8", newline="") as stream:
            shown = EscapingWriter(stream)
            for piece in pieces:
                shown.write(piece)
            shown.close()
        return b"".join(iter(lambda: piece_of(master), b"")).decode()
    finally:
        os.close(master)


@pytest.mark.parametrize(
    ("hostile", "seen"),
    [
        (b"\x1b]52;c;ZXZpbA==\x07", r"\x1b]52;c;ZXZpbA==\x07"),  # the clipboard
        (b"\x1b[2J\x1b[H", r"\x1b[2J\x1b[H"),
        (b"\x1b[3A\x1b[1000D", r"\x1b[3A\x1b[1000D"),  # up, over the output of others
        (b"\x1b]8;;http://evil\x1b\\text", r"\x1b]8;;http://evil\x1b\text"),
        (b"\x1b[21t\x1b[6n\x1bc", r"\x1b[21t\x1b[6n\x1bc"),  # answers that the terminal would type
        ("\x9b2J\u202etxt".encode(), r"\x9b2J\u202etxt"),
        (b"\xff\xfe\x08\x00", r"\xff\xfe\x08\x00"),
        (
            "\u3164\u2800x\ufe00\ufe0f\U000e0141".encode(),
            r"\u3164\u2800x\ufe00\ufe0f\U000e0141",
        ),  # shows nothing
    ],
)
def test_a_terminal_is_told_nothing_but_text_and_colour(hostile: bytes, seen: str) -> None:
    """In one piece, and in as many as it has bytes."""
    assert on_terminal(b"a", hostile, b"b") == f"a{seen}b\x1b[0m"
    assert on_terminal(*(hostile[at : at + 1] for at in range(len(hostile)))) == f"{seen}\x1b[0m"


def test_text_and_colour_are_as_they_were() -> None:
    """Lines, tabs, progress on one line, umlauts cut in two; colours end with the agent."""
    said = "über\tall\r\n\x1b[1;31mred\x1b[0m 10 %\r\x1b[K20 %\n".encode()
    assert on_terminal(said[:1], said[1:]) == said.decode() + "\x1b[0m"
    assert (
        on_terminal("\u26a0\ufe0f \U0001f6e0\ufe0f".encode())
        == "\u26a0\ufe0f \U0001f6e0\ufe0f\x1b[0m"
    )
    assert on_terminal("\u26a0\ufe0f\ufe0f".encode()) == "\u26a0\ufe0f\\ufe0f\x1b[0m"
    assert on_terminal(b"end\x1b[3") == "end\\x1b[3\x1b[0m"


@pytest.mark.parametrize("hiding", ["\x1b[8m", "\x1b[30;40m", "\x1b[0;8m", "\x1b[8m\x1b[1m"])
def test_between_two_pieces_nothing_is_hidden(hiding: str) -> None:
    """Whatever is printed next, by this program or after it was killed, has the terminal's own
    colours."""
    found = on_terminal(f"secret{hiding}".encode(), b"hidden", b"shown\x1b[m", b"plain")
    pieces = (
        f"secret{hiding}\x1b[0m",
        f"{hiding}hidden\x1b[0m",
        f"{hiding}shown\x1b[m",
        "plain\x1b[0m",
    )
    assert found == "".join(pieces)


def test_what_was_set_is_remembered_within_bounds() -> None:
    """Unclosed colours make no chunk longer than that."""
    colors = ""
    for _ in range(1000):
        colors = _active_colors(colors, ["\x1b[38;5;1m"])
        assert len(colors) <= 256
    assert _active_colors(colors, ["\x1b[K"]) == colors != ""


def test_a_file_has_every_byte(tmp_path: Path) -> None:
    """What is no terminal gets what the agent wrote."""
    said = b"\xff\x1b[2J\x00\r\n\x1b["
    with (tmp_path / "out").open("w", encoding="utf-8") as stream:
        assert isinstance(stream, io.TextIOWrapper)
        shown = EscapingWriter(stream)
        shown.write(said)
        shown.close()
    assert (tmp_path / "out").read_bytes() == said

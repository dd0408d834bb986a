"""Server-sent events are parsed however their bytes are split."""

from hypothesis import given
from hypothesis import strategies as st

from agentbox.core.http.sse_parser import SseEvent, SseParser

TEXT = 'retry: 1000\n\n: \n\nid: 1\nevent: stdout\ndata: {"a":"é"}\n\nid: 2\ndata: x\ndata: y\n\nid: 3\nevent: exit\ndata:z\n'
WANTED = [SseEvent("1", "stdout", '{"a":"é"}'), SseEvent("2", "message", "x\ny")]


@given(st.lists(st.integers(1, 20), max_size=40))
def test_any_cut_gives_the_same_events(sizes: list[int]) -> None:
    """Cuts inside a line or a character change nothing; an event without its empty line is not delivered."""
    data, parser, result = TEXT.encode(), SseParser(), []
    for size in sizes:
        result += parser.feed(data[:size])
        data = data[size:]
    assert result + parser.feed(data) == WANTED


def test_line_ends_may_be_crlf() -> None:
    """A proxy may rewrite line ends."""
    assert SseParser().feed(TEXT.replace("\n", "\r\n").encode()) == WANTED

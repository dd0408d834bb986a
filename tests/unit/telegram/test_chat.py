"""Messages arrive in order, once each, whatever the service answers first."""

from __future__ import annotations

from typing import Any

import pytest
from support.bot_api import BotApi

from agentbox.box.programs.telegram.chat_sender import MAX_LENGTH, ChatRefused, ChatSender
from agentbox.box.programs.telegram.formatting import format_event, group_messages


def test_a_message_is_taken(service: BotApi) -> None:
    """By the method's own path and fields."""
    ChatSender("1:abc", "-42", api=service.url, sleep=lambda _: None).send("hello")
    assert service.paths == ["/bot1:abc/sendMessage"]
    assert service.messages == [{"chat_id": "-42", "text": "hello", "disable_notification": True}]


def test_it_waits_as_long_as_the_service_asks(service: BotApi) -> None:
    """Then sends again; an error of the service doubles the wait."""
    slept: list[float] = []
    service.refusals = [(429, {"parameters": {"retry_after": 7}}), (502, {}), (502, {})]
    ChatSender("1:abc", "-42", api=service.url, sleep=slept.append).send("hello")
    assert [row["text"] for row in service.messages] == ["hello"]
    assert slept == [7, 2, 4, 1]


def test_wrong_credentials_are_told_without_the_token(service: BotApi) -> None:
    """Trying again would change nothing."""
    service.refusals = [(401, {"description": "Unauthorized"})]
    with pytest.raises(ChatRefused, match="401 Unauthorized") as raised:
        ChatSender("1:abc", "-42", api=service.url).send("hello")
    assert "1:abc" not in raised.value.message


def test_a_service_out_of_reach_is_waited_for(service: BotApi) -> None:
    """Nothing is lost: the message is sent once it answers."""
    chat = ChatSender(
        "1:abc",
        "-42",
        api="http://127.0.0.1:1",
        sleep=lambda _: setattr(chat, "_url", f"{service.url}/x"),
    )
    chat.send("hello")
    assert [row["text"] for row in service.messages] == ["hello"]


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({"type": "agent.started", "data": {"name": "builder"}}, "12:00:01 builder started"),
        (
            {"type": "agent.exited", "data": {"name": "b", "exit": {"code": 3}}},
            "12:00:01 b exited: code 3",
        ),
        (
            {"type": "agent.exited", "data": {"name": "b", "exit": {"signal": "KILL"}}},
            "12:00:01 b exited: KILL",
        ),
        ({"type": "agent.lost", "data": {"exit": {"reason": "lost"}}}, "12:00:01 a1 lost: lost"),
        (
            {"type": "agent.message", "data": {"text": "one\ntwo\x1b[2J"}},
            "12:00:01 a1 message: one two [2J",
        ),
        (
            {"type": "agent.message", "data": {"text": "one\u3164two\ufe00"}},
            "12:00:01 a1 message: one two ",
        ),
    ],
)
def test_an_event_is_one_line(event: dict[str, Any], said: str) -> None:
    """Agent, task, outcome; no text of them can break out of its line."""
    assert format_event({"ts": "2026-01-02T12:00:01.000Z", "agent_id": "a1", **event}) == said


def test_lines_share_messages() -> None:
    """As few as the service's limit allows, none cut, each with the box's name."""
    event = {
        "ts": "2026-01-02T12:00:01.000Z",
        "type": "agent.message",
        "agent_id": "a",
        "data": {"text": "x" * 250},
    }
    found = list(group_messages("worker", [event] * 40))
    assert len(found) == 3
    assert all(len(text) <= MAX_LENGTH and text.startswith("[worker]\n") for text in found)
    assert sum(text.count("\n") for text in found) == 40
    assert list(group_messages("worker", [])) == []

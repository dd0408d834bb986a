"""The mirror on a real API, journal and agent-host, into a service that speaks the Bot API."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import read_all, sh, until
from support.api_box import ApiBox
from support.bot_api import BotApi

from agentbox.box.programs.telegram.chat_sender import ChatRefused, ChatSender
from agentbox.box.programs.telegram.mirror import Mirror
from agentbox.client import BoxClient


@pytest.fixture
def service() -> Iterator[BotApi]:
    with BotApi() as running:
        yield running


def mirror(box: ApiBox, service: BotApi, place: Path) -> Mirror:
    return Mirror(
        box.client(),
        ChatSender("1:abc", "-42", api=service.url, sleep=lambda _: None),
        place,
        "worker",
    )


def lines(service: BotApi) -> list[str]:
    """Every line of every message, without the heads."""
    return [line for row in service.messages for line in row["text"].splitlines()[1:]]


def run_one(client: BoxClient, code: int) -> None:
    """One agent, to its end, which is in the journal when this returns."""
    before = client.call("head_event")["seq"]
    submitted = client.submit_task(sh(f"exit {code}"), timeout_s=20)
    read_all(client, submitted.task_id)
    query = {"since": before, "types": "agent.exited"}
    until(lambda: client.call("read_events", query=query)["events"])


def test_what_becomes_of_an_agent_is_in_the_chat(
    box: ApiBox, client: BoxClient, service: BotApi, tmp_path: Path
) -> None:
    """Its start and its end, in order, as they happen; nothing from before the mirror's first run.
    Revoked credentials end the program."""
    run_one(client, 1)
    place = tmp_path / "position"
    running, ends = mirror(box, service, place), []

    def until_refused() -> None:
        with pytest.raises(ChatRefused) as raised:
            running.run()
        ends.append(raised.value.message)

    thread = threading.Thread(target=until_refused, daemon=True)
    thread.start()
    until(place.exists)
    run_one(client, 3)
    until(lambda: len(lines(service)) == 3)
    assert [line.split(" ", 1)[1] for line in lines(service)] == [
        "test spawn requested",
        "test started",
        "test exited: code 3",
    ]
    assert all(row["text"].startswith("[worker]\n") for row in service.messages)
    service.refusals = [(401, {"description": "Unauthorized"})]
    run_one(client, 0)
    thread.join(20)
    assert ends == ["cannot write to the chat: the service returned 401 Unauthorized"]


def test_it_goes_on_where_it_was(
    box: ApiBox, client: BoxClient, service: BotApi, tmp_path: Path
) -> None:
    """Events from while the mirror was down arrive later, and only those."""
    place = tmp_path / "position"
    first = mirror(box, service, place)
    start = first.load_position()
    run_one(client, 4)
    first.catch_up(start)
    run_one(client, 5)
    second = mirror(box, service, place)
    second.catch_up(second.load_position())
    ended = [line.split(" ", 1)[1] for line in lines(service) if "exited" in line]
    assert ended == ["test exited: code 4", "test exited: code 5"]


def test_a_damaged_place_begins_now(
    box: ApiBox, client: BoxClient, service: BotApi, tmp_path: Path
) -> None:
    """It is written anew, and the chat is not flooded with the past."""
    place = tmp_path / "position"
    place.write_text("rubbish")
    run_one(client, 6)
    found = mirror(box, service, place)
    found.catch_up(found.load_position())
    assert service.messages == []
    assert place.read_text() == str(client.call("head_event")["seq"])

"""Attacks by what an agent says, not by what it calls: their layer, and the test that tries each.
They are no cases of `agentbox doctor --attack`, as they need a session.
"""

from collections.abc import Iterator
from typing import Final

HEAD: Final = """
## Over the Agent Client Protocol
An agent of a session tries these by its messages. Each is tried by a test against a real agent-host;
paths of tests are below `tests`.
"""
_HOSTILE: Final = "unit/sessions/test_hostile_agent.py"
_SESSIONS: Final = "unit/sessions/test_sessions.py"
_EDITOR: Final = "api/test_acp.py"
_APPROVALS: Final = "api/test_acp_approvals.py"
_EDITORS: Final = "unit/sessions/test_editors_apart.py"
# What it tries; what stops it; file and name of the test.
LINES: Final = (
    (
        "reads and writes files of the editor by `fs/*`, or starts its terminals",
        "session-host: the editor is never asked, files and terminals are those of the sandbox",
        _EDITOR,
        "test_files_and_terminals_are_those_of_the_box",
    ),
    (
        "leaves its branch by a path of `fs/*`",
        "agent-host: openat2 beneath the branch",
        _SESSIONS,
        "test_files_and_terminals_are_those_of_the_branch",
    ),
    (
        "names the session of another in an update",
        "session-host: what comes from its program belongs to its session",
        _HOSTILE,
        "test_other_sessions_are_not_named",
    ),
    (
        "imitates a question of the box by its ids, words and options",
        "session-host: ids of its calls have a prefix, its words are quoted, its answers are its own",
        _APPROVALS,
        "test_an_agent_neither_imitates_nor_answers_it",
    ),
    (
        "answers a question of the box before the editor does",
        "session-host: only answers to requests that were made of it count",
        _APPROVALS,
        "test_an_agent_neither_imitates_nor_answers_it",
    ),
    (
        "is helped by an editor of another caller, which names its session",
        "session-host: editors know the sessions of their own caller",
        _EDITORS,
        "test_another_caller_s_session_is_not_found",
    ),
    (
        "asks for permissions without end",
        "session-host: 8 wait and 60 an hour are asked",
        _HOSTILE,
        "test_questions_that_wait_are_bounded",
    ),
    (
        "sends requests without waiting for answers",
        "session-host: 64 wait",
        _HOSTILE,
        "test_requests_that_wait_are_bounded",
    ),
    (
        "sends what is no ACP: numbers that JSON does not have, deep nesting, ids that are lists",
        "session-host: its session ends, the others go on",
        _HOSTILE,
        "test_a_line_that_is_no_acp_ends_its_session",
    ),
    (
        "sends text that UTF-8 cannot hold",
        "session-host: U+FFFD in its place",
        _HOSTILE,
        "test_halves_of_characters_are_text_that_can_be_kept",
    ),
    (
        "swells what is stored of its session with commands and options",
        "session-host: 64 KiB of each",
        _HOSTILE,
        "test_settings_of_an_agent_do_not_swell_its_row",
    ),
    (
        "writes a line without an end",
        "session-host: `acp.max_message`",
        "unit/sessions/test_session_limits.py",
        "test_a_line_has_its_most",
    ),
    (
        "floods an editor that reads slowly",
        "session-host: updates are joined, the transcript has each",
        "unit/sessions/test_slow_editor.py",
        "test_updates_coalesce",
    ),
    (
        "does not stop when its turn is cancelled",
        "session-host: an interrupt, then the end of its program",
        _SESSIONS,
        "test_a_deaf_agent_is_ended_and_resumed",
    ),
    (
        "hides a call of a tool by an update of an unknown kind",
        "session-host: it is in the transcript as it is",
        _SESSIONS,
        "test_what_the_protocol_does_not_know_passes",
    ),
    (
        "repeats or changes its transcript when it is resumed",
        "session-host: what it says while it loads is not taken",
        _SESSIONS,
        "test_a_deaf_agent_is_ended_and_resumed",
    ),
    (
        "comes back by a resumption with rights that were revoked",
        "agent-host: revoked grants stay so",
        "unit/agents/test_session_sandboxes.py",
        "test_what_was_revoked_stays_revoked",
    ),
)


def lines() -> Iterator[str]:
    """Of the page."""
    yield HEAD
    for attempt, layer, file, test in LINES:
        yield f"- {attempt}\n  ({layer}; `{file.rpartition('/')[2]}::{test}`)"

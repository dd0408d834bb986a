"""Tasks, through a real API and a real agent-host."""

import base64

import pytest
from helpers import read_all, sh, spec, text, until
from support.api_box import ApiBox

from agentbox.client import ApiError, BoxClient, every
from agentbox.contracts.task_records import Task


def run(client: BoxClient, script: str, **options: object) -> Task:
    """The finished task of a shell script."""
    return read_all(client, client.submit_task(sh(script), **options).task_id)[1]  # type: ignore[arg-type]


def test_output_and_exit_code_come_back(client: BoxClient) -> None:
    """Both streams arrive, the exit code is exact, and a failure of the command fails the task."""
    items, task = read_all(client, client.submit_task(sh("echo out; echo err >&2; exit 7")).task_id)
    assert text(items) == "out\n"
    assert text(items, "stderr") == "err\n"
    assert (task.state, task.exit["code"], task.note) == ("failed", 7, "exit code 7")  # type: ignore[index]
    assert run(client, "exit 0").state == "succeeded"


def test_bytes_pass_unchanged(client: BoxClient) -> None:
    """What is no text arrives byte for byte."""
    items, _ = read_all(
        client, client.submit_task(spec("/usr/bin/head", "-c", "5000", "/dev/urandom")).task_id
    )
    assert len(b"".join(item.data for item in items if item.kind == "stdout")) == 5000


def test_a_signal_is_told_apart(client: BoxClient) -> None:
    """A program ended by a signal has no exit code."""
    task = run(client, "kill -SEGV $$")
    assert task.exit is not None
    assert task.exit["code"] is None
    assert "SEGV" in task.exit["signal"]
    assert "SEGV" in task.note


def test_a_bead_is_the_receipt(client: BoxClient) -> None:
    """The bead under the epic `tasks` has the exit record as its result, and records what confined
    the agent."""
    task = run(client, "exit 3")
    bead = client.call("show_bead", {"id": task.task_id})
    epic = client.call("show_bead", {"id": bead["parent_id"]})
    assert (epic["title"], epic["kind"]) == ("tasks", "epic")
    assert bead["result"]["exit"]["code"] == 3
    assert bead["result"]["isolation"]["network"]["state"] == "enforced"
    assert (bead["status"], bead["outcome"], bead["attempts"]) == ("closed", "failed", 1)


def test_the_journal_tells_the_run(client: BoxClient) -> None:
    """Requested before started before exited, each once."""
    task = run(client, "exit 0")

    def event_types() -> list[str]:
        page = client.call("read_events", query={"types": "agent.*", "limit": 1000})["events"]
        return [
            e["type"]
            for e in page
            if task.agent_id == e["agent_id"] or task.task_id in str(e["data"])
        ]

    until(lambda: "agent.exited" in event_types())
    assert event_types() == ["agent.spawn.requested", "agent.started", "agent.exited"]


def test_the_time_limit_ends_it(client: BoxClient) -> None:
    """Wall clock time is the agent's own limit; the note explains it."""
    task = run(client, "sleep 60", timeout_s=0.5)
    assert task.exit is not None
    assert (task.state, task.exit["reason"]) == ("failed", "timeout")
    assert task.note == "ended after 0.5 s, its time limit"


def test_what_cannot_start_fails_with_a_sentence(client: BoxClient) -> None:
    """A missing program closes the bead as failed; no agent remains."""
    _, task = read_all(client, client.submit_task(spec("/no/such/program")).task_id)
    assert task.state == "failed"
    assert task.note.startswith("could not start: ")
    assert task.exit is None


def test_input_reaches_the_program(client: BoxClient) -> None:
    """`input` is standard input, to its end."""
    data = bytes(range(256)) * 1000
    items, task = read_all(
        client, client.submit_task(spec("/usr/bin/base64", "-w0"), input=data).task_id
    )
    assert task.state == "succeeded"
    assert base64.b64decode(text(items)) == data


def test_a_program_need_not_read_its_input(client: BoxClient) -> None:
    """One that closes its standard input early runs on to its own end."""
    task_id = client.submit_task(
        sh("exec 0<&-; sleep 0.5; echo done"), input=b"x" * 300_000
    ).task_id
    items, task = read_all(client, task_id)
    assert (text(items), task.state) == ("done\n", "succeeded")


def test_secret_looking_arguments_run_as_given(client: BoxClient) -> None:
    """The privacy filter may mask what the bead shows; the program gets its true arguments."""
    items, _ = read_all(
        client, client.submit_task(spec("/bin/echo", "someone@example.org")).task_id
    )
    assert text(items) == "someone@example.org\n"


def test_the_same_key_is_one_task(client: BoxClient) -> None:
    """A repeated dedup_key runs nothing again."""
    first = client.submit_task(sh("exit 0"), dedup_key="once")
    second = client.submit_task(sh("exit 1"), dedup_key="once")
    assert first.task_id == second.task_id
    assert read_all(client, first.task_id)[1].state == "succeeded"


def test_a_running_task_is_cancelled(client: BoxClient) -> None:
    """DELETE returns when the agent has ended; the whole tree has exited and the bead is cancelled."""
    task_id = client.submit_task(sh("sleep 300 & echo $!; wait")).task_id
    agent = until(lambda: client.get_task(task_id).agent_id)
    until(lambda: any(item.kind == "stdout" for item in _now(client, task_id)))
    task = client.cancel_task(task_id)
    assert (task.state, task.note) == ("cancelled", "cancelled by urn:agentbox:operator")
    assert client.call("get_agent", {"id": agent})["state"] in ("exited", "failed")
    assert client.cancel_task(task_id).state == "cancelled"


def _now(client: BoxClient, task_id: str) -> list[object]:
    return [item for item in client.task_logs(task_id, follow=False) if not isinstance(item, Task)]


def test_thirty_two_run_at_once(client: BoxClient, box: ApiBox) -> None:
    """32 tasks of which none ends before all run: none waits for capacity."""
    tasks = [
        client.submit_task(sh("touch here; while [ ! -e go ]; do sleep 0.2; done")).task_id
        for _ in range(32)
    ]
    copies = until(
        lambda: len(found := list(box.paths.branches.glob("*/work/here"))) == 32 and found, 120
    )
    assert {client.get_task(task_id).state for task_id in tasks} == {"running"}
    for here in copies:
        here.with_name("go").touch()
    assert [read_all(client, task_id)[1].state for task_id in tasks] == ["succeeded"] * 32


def test_lists_page_by_page(client: BoxClient) -> None:
    """Every task is listed once."""
    made = {client.submit_task(sh("exit 0")).task_id for _ in range(3)}
    found = [task.task_id for task in every(client.list_tasks, limit=2)]
    assert made <= set(found)
    assert len(found) == len(set(found))


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/spec"),
        ({"spec": {"name": "x", "argv": ["/bin/true"], "profile": "p"}, "colour": 1}, "/colour"),
        ({"spec": {"name": "x", "argv": "true", "profile": "p"}}, "/spec/argv"),
        (
            {"spec": {"name": "x", "argv": ["/bin/true"], "profile": "p"}, "timeout_s": 0},
            "/timeout_s",
        ),
        (
            {"spec": {"name": "x", "argv": ["/bin/true"], "profile": "p", "restart": "always"}},
            "/spec/restart",
        ),
    ],
)
def test_bad_bodies_are_refused_with_a_pointer(
    client: BoxClient, body: dict[str, object], pointer: str
) -> None:
    """400, and the pointer of the invalid value; nothing is queued."""
    with pytest.raises(ApiError) as caught:
        client.call("submit_task", body=body)
    assert caught.value.code == "validation"
    assert caught.value.problem["errors"][0]["pointer"] == pointer


def test_an_unknown_task_is_not_found(client: BoxClient) -> None:
    """404 before any byte of a stream, and for a bead that is no task."""
    epic = client.call("create_epic", body={"title": "other"})
    for task_id in ("01938f5e-0000-7000-8000-000000000000", epic["id"]):
        with pytest.raises(ApiError) as caught:
            read_all(client, task_id)
        assert caught.value.code == "not-found"


def test_the_spool_is_empty_at_the_end(box: ApiBox, client: BoxClient) -> None:
    """A finished task leaves nothing but its bead."""
    run(client, "exit 0")
    until(lambda: not list(box.paths.task_spool.glob("*.json")))


def test_a_bead_alone_runs_nothing(client: BoxClient) -> None:
    """A token that may write beads may not run programs: a bead under the epic, with or without
    another task's reference, fails."""
    done = run(client, "exit 0")
    bead = client.call("show_bead", {"id": done.task_id})
    waiting = client.submit_task(sh("exit 0"), not_before="2099-01-01T00:00:00Z").task_id
    other = client.call("show_bead", {"id": waiting})["data"]
    made = [
        client.call("create_child", {"id": bead["parent_id"]}, body={"title": "x", "data": data})[
            "id"
        ]
        for data in ({}, other, {"task": {"ref": "../x"}})
    ]
    for bead_id in made:
        until(
            lambda bead_id=bead_id: client.call("show_bead", {"id": bead_id})["status"] == "closed"
        )
        assert client.call("show_bead", {"id": bead_id})["outcome"] == "failed"
    assert client.get_task(waiting).state == "queued"
    assert client.cancel_task(waiting).state == "cancelled"

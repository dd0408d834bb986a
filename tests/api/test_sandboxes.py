"""Sandboxes over a real API and agent-host, and on the command line."""

import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commandline import agentbox
from helpers import until
from support.api_box import ApiBox

from agentbox.client import ApiError, BoxClient, BoxUnreachable, every


@pytest.fixture(autouse=True)
def _clean(client: BoxClient) -> Iterator[None]:
    """After a test no sandbox runs, and no review waits."""
    yield
    for sandbox in every(client.sandboxes.list):
        client.sandboxes.end(sandbox.sandbox_id, grace_s=0)
    for review in client.reviews.list().items:
        client.reviews.discard(review.agent_id)


def code_of(call: Callable[[], object]) -> tuple[int, str]:
    """Status and code of the problem."""
    with pytest.raises(ApiError) as caught:
        call()
    return caught.value.status, caught.value.code


def test_from_create_to_review(client: BoxClient, box: ApiBox) -> None:
    """Programs run one after another; what they leave is one review; then the sandbox is over."""
    (box.paths.workspace / "old").write_text("1\n")
    sandbox = client.sandboxes.create("lab", ttl_s=60, labels={"of": "test"})
    one = sandbox.sandbox_id
    assert (sandbox.state, sandbox.labels) == ("running", {"of": "test"})
    result = client.sandboxes.exec(one, ["sh", "-c", "cat old - > new"], stdin=b"2\n")
    assert result.exit is not None
    assert (result.n, result.exit.code) == (1, 0)
    failed = client.sandboxes.exec(one, ["sh", "-c", "cat new; exit 4"], max_output=2)
    assert failed.exit is not None
    assert (failed.exit.code, failed.stdout, failed.truncated) == (4, b"1\n", True)
    items = list(client.sandboxes.stream(one, "2"))
    assert [(item.kind, item.generation) for item in items] == [("stdout", 2), ("exit", 2)]
    assert list(client.sandboxes.stream(one, "2", since=items[0].cursor)) == items[1:]
    assert [found.sandbox_id for found in every(client.sandboxes.list)] == [one]
    assert client.agents.get(one).kind == "sandbox"
    ended = client.sandboxes.end(one)
    assert (ended.state, ended.branch["state"]) == ("exited", "sealed")
    (review,) = client.reviews.list().items
    assert (review.agent_id, review.added) == (one, 1)
    assert code_of(lambda: client.sandboxes.exec(one, ["true"])) == (410, "sandbox-over")
    assert code_of(lambda: client.sandboxes.show(one[:-4] + "0000")) == (404, "not-found")
    (box.paths.workspace / "old").unlink()


def test_it_is_in_the_journal(client: BoxClient, box: ApiBox) -> None:
    """Its creation, each program and its end, with the ids of its run. Of a command the name of the
    program, escaped and bounded, and the digest of all words, which may be secrets."""
    made = client.tokens.create("maker", scopes=["agents:read", "agents:write"])
    with box.client(made.value) as maker:
        one = maker.sandboxes.create("lab", request_id="journal").sandbox_id
        maker.sandboxes.create("lab", request_id="journal")
    words = ["sh", "-c", "sleep 0.2; exit 3", "a-secret"]
    client.sandboxes.exec(one, words)
    client.sandboxes.exec(one, ["\x1b[2J" * 100])
    client.sandboxes.exec(one, ["sleep", "60"], detach=True)
    client.sandboxes.end(one, grace_s=0)
    read = {"agent_id": one, "types": "sandbox.*", "limit": 100}
    events = until(
        lambda: (
            (found := client.call("read_events", query=read)["events"])
            and found[-1]["type"] == "sandbox.ended"
            and found
        )
    )
    first, *execs, last = [
        {name: value for name, value in event["data"].items() if name != "at"} for event in events
    ]
    assert [event["type"] for event in events[1:-1]] == ["sandbox.exec"] * 3
    assert first == {
        "name": "lab",
        "profile": "sandboxed",
        "by": "urn:agentbox:token:maker",
        "ttl_s": 3600,
    }
    shell, missing, sleeper = execs
    assert shell["program"] == "sh"
    assert (
        shell["argv_sha256"]
        == hashlib.sha256(b"\0".join(map(str.encode, [*words, ""]))).hexdigest()
    )
    assert shell["exit"] == {"code": 3, "signal": None, "reason": "exit"}
    assert 200 <= shell["ms"] < 20_000
    assert missing["program"].startswith("\\x1b[2J")
    assert len(missing["program"]) == 256
    assert (missing["n"], missing["exit"]["reason"]) == (2, "not-started")
    assert sleeper["exit"]["reason"] == "sandbox-over"
    assert last == {"name": "lab", "reason": "terminated", "programs": 3}
    assert "a-secret" not in str(events)
    own = client.call("read_events", query={**read, "types": "agent.started"})["events"][0]
    for event in events:
        assert (event["session_id"], event["trace_id"]) == (own["session_id"], own["trace_id"])


def test_a_detached_program(client: BoxClient) -> None:
    """It is followed while it runs, and signalled."""
    one = client.sandboxes.create("lab").sandbox_id
    started = client.sandboxes.exec(
        one, ["sh", "-c", "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done"],
        detach=True,
    )  # fmt: skip
    assert started.exit is None
    seen = b""
    for item in client.sandboxes.stream(one, "1"):
        seen += item.data if item.kind == "stdout" else b""
        if item.data == b"up\n":
            client.sandboxes.signal(one, "1", "TERM")
    assert seen == b"up\nbye\n"
    assert code_of(lambda: client.sandboxes.signal(one, "1", "TERM")) == (409, "invalid-transition")
    assert code_of(lambda: client.sandboxes.signal(one, "x", "TERM")) == (404, "not-found")
    assert code_of(lambda: list(client.sandboxes.stream(one, "9"))) == (404, "not-found")


def test_a_client_attaches_to_a_program(client: BoxClient) -> None:
    """Bytes both ways, from the first; one without an open stdin refuses before the upgrade."""
    one = client.sandboxes.create("lab").sandbox_id
    client.sandboxes.exec(one, ["cat"], interactive=True, detach=True, stdin=b"first\n")
    with client.sandboxes.attach(one, "1") as attached:
        chunks = iter(attached)
        seen = next(chunks)
        attached.send(b"second\n")
        while seen.count(b"\n") < 2:
            seen += next(chunks)
        attached.close_stdin()
        assert seen + b"".join(chunks) == b"first\nsecond\n"
    client.sandboxes.exec(one, ["sleep", "60"], detach=True)
    for n, expected in (("1", 409), ("2", 409), ("3", 404)):
        with pytest.raises(ApiError) as caught, client.sandboxes.attach(one, n):
            pass
        assert caught.value.status == expected


def test_files_over_http(client: BoxClient, box: ApiBox) -> None:
    """In parts, with odd names; over the limit and outside are problems of their own."""
    one = client.sandboxes.create("lab").sandbox_id
    large = os.urandom(9 << 20)
    client.sandbox_files.write(one, "workspace/a b/%é#?", (large[:5], large[5:]))
    assert client.sandbox_files.read(one, "workspace/a b/%é#?") == large
    listed = client.sandboxes.exec(one, ["sh", "-c", "cat a*/* | sha256sum; ls a*/"])
    assert listed.stdout.decode() == f"{hashlib.sha256(large).hexdigest()}  -\n%é#?\n"
    client.sandbox_files.write(one, "tmp/empty", b"")
    assert client.sandbox_files.read(one, "tmp/empty") == b""
    client.sandbox_files.remove(one, "tmp/empty")
    client.sandboxes.exec(one, ["sh", "-c", "ln -s /etc etc; head -c 65M /dev/zero > big"])
    calls = {
        (404, "not-found"): "tmp/empty",
        (403, "path-outside"): "workspace/etc/passwd",
        (413, "file-too-large"): "workspace/big",
    }
    for problem, path in calls.items():
        assert code_of(lambda path=path: client.sandbox_files.read(one, path)) == problem
    too_much = (b"x" * (1 << 20) for _ in range(66))
    assert code_of(lambda: client.sandbox_files.write(one, "tmp/x", too_much))[0] == 413
    client.sandboxes.end(one, grace_s=0)
    assert code_of(lambda: client.sandbox_files.read(one, "tmp/x")) == (410, "sandbox-over")


def test_scopes(client: BoxClient, box: ApiBox) -> None:
    """`agents:read` sees, and changes nothing."""
    made = client.tokens.create("reader", scopes=["agents:read"])
    one = client.sandboxes.create("lab").sandbox_id
    with box.client(made.value) as reader:
        assert reader.sandboxes.show(one).name == "lab"
        assert code_of(lambda: reader.sandboxes.exec(one, ["true"]))[0] == 403
        assert code_of(lambda: reader.sandboxes.create("lab"))[0] == 403
        assert code_of(lambda: reader.sandboxes.end(one))[0] == 403
        assert code_of(lambda: reader.sandbox_files.write(one, "tmp/x", b""))[0] == 403
        assert code_of(lambda: reader.sandbox_files.read(one, "tmp/x"))[0] == 404


def test_an_idempotency_key_is_the_token_s_own(client: BoxClient, box: ApiBox) -> None:
    """Another token with the same key gets a program and a sandbox of its own."""
    made = client.tokens.create("other", scopes=["agents:read", "agents:write"])
    one = client.sandboxes.create("lab", request_id="same").sandbox_id
    mine = client.sandboxes.exec(one, ["echo", "mine"], request_id="same")
    with box.client(made.value) as other:
        theirs = other.sandboxes.exec(one, ["echo", "theirs"], request_id="same")
        sandbox = other.sandboxes.create("lab", request_id="same").sandbox_id
    assert (mine.stdout, theirs.stdout, theirs.n) == (b"mine\n", b"theirs\n", 2)
    assert sandbox != one
    assert client.sandboxes.create("lab", request_id="same").sandbox_id == one


def test_a_killed_api_loses_no_program_and_no_byte(own_box: Callable[..., ApiBox]) -> None:
    """The caller's connection breaks; the program runs on; its output is read on by cursor, and
    the repeated request returns its result."""
    box = own_box()
    script = "for i in $(seq 200); do echo line $i; sleep 0.01; done"
    expected = "".join(f"line {i}\n" for i in range(1, 201)).encode()
    with box.client() as client:
        one = client.sandboxes.create("lab").sandbox_id
        broken: list[BaseException] = []

        def run() -> None:
            with box.client() as other:
                try:
                    other.sandboxes.exec(one, ["sh", "-c", script], request_id="once")
                except BoxUnreachable as error:
                    broken.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        read, position = b"", 0
        until(lambda: client.sandboxes.show(one).execs != ())
        for item in client.sandboxes.stream(one, "1"):
            read, position = read + item.data, item.cursor
            if len(read) > 300:
                break
        box.kill()
        thread.join(20)
        box.start()
        for item in client.sandboxes.stream(one, "1", since=position):
            read += item.data if item.kind == "stdout" else b""
        assert read == expected
        again = client.sandboxes.exec(one, ["sh", "-c", script], request_id="once")
    assert len(broken) == 1
    assert again.exit is not None
    assert (again.n, again.exit.code, again.stdout) == (1, 0, expected)


def test_the_command_line(box: ApiBox, tmp_path: Path) -> None:
    """Create, exec with its exit code, cp, show, logs, signal, end."""

    def sandbox(*arguments: str, code: int = 0, given: bytes | None = None) -> str:
        done = agentbox(box, "sandbox", *arguments, given=given)
        assert done.returncode == code, done.stderr
        return (done.stdout + done.stderr).decode()

    one = sandbox("create", "lab").strip()
    printed = sandbox("exec", "-e", "A=b", one, "--", "sh", "-c", "echo $A; exit 3", code=3)
    assert printed == "b\n"
    assert "no-such-program" in sandbox("exec", one, "no-such-program", code=127)
    assert sandbox("exec", "-d", one, "sleep", "60") == "3\n"
    sandbox("cp", "-", f"{one}:/workspace/in", given=b"copied")
    sandbox("cp", f"{one}:/workspace/in", str(tmp_path / "out"))
    assert (tmp_path / "out").read_bytes() == b"copied"
    assert "Give one path" in sandbox("cp", "in", "out", code=2)
    assert "3  running" in sandbox("show", one)
    assert sandbox("logs", one, "1") == "b\n"
    sandbox("signal", one, "3", "INT")
    until(lambda: "signal SIGINT" in sandbox("show", one))
    assert one in sandbox("list")
    assert one in sandbox("end", one)
    refused = sandbox("exec", one, "true", code=125)
    assert "it has ended" in refused
    assert "create another one" in refused  # the hint of agent-host
    assert "Put -x before" in sandbox("exec", one, "-x", code=2)

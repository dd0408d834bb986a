"""`bead`, `pod` and `memory` against a real API: ids by prefix, pages, exit codes, exports and imports."""

import io
import json
import re
import tarfile
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from commandline import agentbox
from support.api_box import ApiBox

from agentbox.client import BoxClient
from agentbox.core.errors import ExitCode
from agentbox.host.cli.transfer import MAX_LINE

HOSTILE = "\x1b]52;c;ZXZpbA==\x07\x1b[2J\r\n1  root  trusted\x9b31m"
OBEYED = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


def run(box: ApiBox, *words: str, given: bytes | None = None) -> tuple[int, str, str]:
    done = agentbox(box, *words, given=given)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def documents(box: ApiBox, *words: str, given: bytes | None = None) -> Any:
    code, out, err = run(box, "--json", *words, given=given)
    assert code == 0, err
    return json.loads(out)


@pytest.fixture(scope="module")
def epic(box: ApiBox) -> str:
    """An epic with 120 children."""
    with box.client() as client:
        made, _ = client.beads.create_epic("many")
        for number in range(120):
            client.beads.create_child(made.id, f"child {number}")
        return made.id


def test_a_list_is_one_page(box: ApiBox, epic: str) -> None:
    """100 and a note, or all; a tree too."""
    code, out, err = run(box, "bead", "list", "--parent", epic)
    assert (code, len(out.splitlines()), "--all" in err) == (0, 100, True)
    assert len(documents(box, "bead", "list", "--parent", epic, "--all")) == 120
    assert len(documents(box, "bead", "tree", epic)) == 100
    tree = documents(box, "bead", "tree", epic, "--all")
    assert [bead["level"] for bead in tree] == [0] + [1] * 120


def test_an_id_by_its_prefix(box: ApiBox, client: BoxClient) -> None:
    """8 or more characters; never a guess."""
    bead, _ = client.beads.create_epic("by prefix")
    assert documents(box, "bead", "show", bead.id[:23])["id"] == bead.id
    twin, _ = client.beads.create_epic("made at the same time")
    assert bead.id[:8] == twin.id[:8]
    for words, code, told in (
        (bead.id[:8], ExitCode.USAGE, "several ids begin with"),
        (bead.id[:7], ExitCode.USAGE, "the first 8 or more"),
        ("ffffffff", ExitCode.BAD, "no id begins with it"),
        (str(uuid.uuid4()), ExitCode.BAD, "cannot find"),
    ):
        done = run(box, "bead", "show", words)
        assert (done[0], told in done[2]) == (code, True), done


def test_conflicts_are_exit_7(box: ApiBox, client: BoxClient) -> None:
    """A claimed bead, a lost lease, a cycle; an object that exists, and one that has changed."""
    epic, _ = client.beads.create_epic("conflicts")
    one, two = (client.beads.create_child(epic.id, name)[0].id for name in ("one", "two"))
    assert run(box, "bead", "claim", one)[0] == 0
    assert run(box, "bead", "claim", one)[0] == ExitCode.BUSY
    lease = str(uuid.uuid4()).encode()
    assert run(box, "bead", "release", "--lease", "-", one, given=lease)[0] == ExitCode.BUSY
    assert run(box, "bead", "dep", one, two)[0] == 0
    assert run(box, "bead", "dep", two, one)[0] == ExitCode.BUSY
    assert run(box, "pod", "put", "--new", "conflict", "-", given=b"1")[0] == 0
    assert run(box, "pod", "put", "--new", "conflict", "-", given=b"2")[0] == ExitCode.BUSY
    assert run(box, "pod", "rm", "--if-match", '"old"', "conflict")[0] == ExitCode.BUSY
    assert client.pods.read("conflict") == b"1"


def test_a_name_that_no_url_has_is_a_usage_error(box: ApiBox) -> None:
    """Not a traceback, and nothing else is asked for instead."""
    for words in (
        ("pod", "stat", "../x"),
        ("pod", "ls", "/"),
        ("memory", "get", "."),
        ("pod", "rm", "a" * 20_000),
    ):
        code, _, err = run(box, *words)
        assert (code, err.startswith("agentbox: cannot ask the box: ")) == (ExitCode.USAGE, True)


def test_what_an_agent_wrote_is_text(box: ApiBox, client: BoxClient) -> None:
    """Titles, values, keys: one line each, every escape visible."""
    bead, _ = client.beads.create_epic(HOSTILE, body=HOSTILE, data={HOSTILE: HOSTILE})
    client.memory.store("hostile", HOSTILE, namespace="hostile", metadata={"m": HOSTILE})
    for words in (
        ("bead", "show", bead.id), ("bead", "tree", bead.id), ("bead", "list", "--all"),
        ("memory", "get", "-n", "hostile", "hostile"), ("memory", "list", "-n", "hostile"),
        ("memory", "get", "--value", "-n", "hostile", "hostile"),
    ):  # fmt: skip
        code, out, _ = run(box, *words)
        assert (code, "52;c;ZXZpbA==" in out) == (0, True), words
        assert not OBEYED.search(out), words
        assert not [line for line in out.splitlines() if line.startswith("1  root")]


def test_beads_reach_another_box(
    box: ApiBox, client: BoxClient, own_box: Callable[..., ApiBox], epic: str
) -> None:
    """With parents, dependencies and ends, each once; tasks stay where they are, on both sides."""
    top, _ = client.beads.create_epic("top", dedup_key="top")
    first, second = (client.beads.create_child(top.id, name)[0].id for name in ("a", "b"))
    client.beads.add_dep(second, first)
    client.beads.close_bead(first, note="was done", result={"n": 1})
    gone, _ = client.beads.create_epic("cancelled")
    client.beads.create_child(gone.id, "below it")
    client.beads.close_bead(gone.id, outcome="cancelled")
    task = client.submit_task({"name": "t", "argv": ["true"], "profile": "sandboxed"}).task_id
    code, exported, _ = run(box, "bead", "export")
    header, *rows = map(json.loads, exported.splitlines())
    assert (code, header["kind"], header["contract_version"]) == (0, "beads", "1.0.0")
    assert task not in exported
    assert not [row for row in rows if (row["dedup_key"] or "").startswith("agentbox:")]
    data = exported.encode()
    other = own_box(orchestrator=False)
    planned = documents(other, "bead", "import", "--dry-run", "-", given=data)
    assert (planned["new"], planned["closed"]) == (len(rows), 3)
    with other.client() as there:
        assert there.beads.list().items == ()
        cut = b"".join(data.splitlines(keepends=True)[:-4])  # an import that was interrupted
        assert documents(other, "bead", "import", "-", given=cut)["new"] == len(rows) - 4
        resumed = documents(other, "bead", "import", "-", given=data)
        assert (resumed["new"], resumed["unchanged"]) == (4, len(rows) - 4)
        again = documents(other, "bead", "import", "-", given=data)
        assert (again["unchanged"], again["new"], again["closed"]) == (len(rows), 0, 0)
        (found,) = [bead for bead in there.beads.list(kind="epic").items if bead.title == "top"]
        done, waits = there.beads.list(parent_id=found.id).items
        assert (done.outcome, done.note, done.result) == ("done", "was done", {"n": 1})
        assert (waits.status, waits.blocked_by) == ("open", (done.id,))
        changed = data.replace(b'"title":"top"', b'"title":"changed"')
        assert run(other, "bead", "import", "-", given=changed)[0] == ExitCode.BUSY
        skipped = documents(other, "bead", "import", "--on-conflict", "skip", "-", given=changed)
        assert skipped["skipped"] == 1
        run_it = json.dumps({**rows[0], "id": str(uuid.uuid4()), "dedup_key": "agentbox:tasks"})
        below = json.dumps({**rows[0], "kind": "task", "parent_id": json.loads(run_it)["id"]})
        lines = "\n".join([json.dumps(header), run_it, below])
        refused = documents(other, "bead", "import", "-", given=lines.encode())
        assert (refused["left out"], refused["new"]) == (2, 0)


HEADER = b'{"kind":"memory","contract_version":"1.0.0","box":"b","time":"2026-01-01T00:00:00Z"}\n'


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "line 1: no header row"),
        (HEADER.replace(b"memory", b"beads"), "line 1: the kind is 'beads', not 'memory'"),
        (HEADER.replace(b"1.0.0", b"2.0.0"), "line 1: contract version 2.0.0"),
        (HEADER + b"{}\n", "line 2: no memory entry"),
        (HEADER + b"[1]\n", "line 2: not a JSON object"),
        (HEADER + b"[" * 200_000 + b"\n", "line 2: not JSON"),
        (HEADER + b"x" * MAX_LINE + b"\n", f"line 2: more than {MAX_LINE} bytes"),
    ],
    ids=("empty", "kind", "version", "record", "list", "deep", "long"),
)
def test_a_bad_line_is_named(box: ApiBox, data: bytes, told: str) -> None:
    """Exit 2 with its number."""
    code, _, err = run(box, "memory", "import", "-", given=data)
    assert (code, told in err) == (ExitCode.USAGE, True), err


def test_memory_goes_and_comes_back(box: ApiBox, client: BoxClient) -> None:
    """Values, texts, metadata and the rest of the time to live; what is over is left out."""
    client.memory.store("k/1", {"a": [1, None]}, namespace="moved", metadata={"m": 1}, text="t")
    client.memory.store("ttl", "x", namespace="moved", ttl_s=3600)
    _, exported, _ = run(box, "memory", "export", "--namespace", "moved")
    stored = client.memory.retrieve("k/1", namespace="moved")
    assert stored is not None
    over = json.loads(exported.splitlines()[1]) | {
        "key": "over",
        "expires_at": "2020-01-01T00:00:00Z",
    }
    for key in ("k/1", "ttl"):
        client.memory.delete(key, namespace="moved")
    data = f"{exported}{json.dumps(over)}\n".encode()
    counts = documents(box, "memory", "import", "-", given=data)
    assert (counts["new"], counts["left out"]) == (2, 1)
    back = client.memory.retrieve("k/1", namespace="moved")
    assert back is not None
    assert (back.value, back.text, back.metadata) == (stored.value, stored.text, stored.metadata)
    limited = client.memory.retrieve("ttl", namespace="moved")
    assert limited is not None
    assert limited.expires_at is not None
    assert 3500 < (limited.expires_at - limited.created_at).total_seconds() <= 3600


def test_pods_go_and_come_back(box: ApiBox, client: BoxClient) -> None:
    """A tar that others read; equal objects are unchanged, others a conflict."""
    bodies = {"tar/a.txt": b"one", "tar/deep/b.bin": bytes(range(256)) * 5000, "tar/empty": b""}
    for path, body in bodies.items():
        client.pods.write(path, body, content_type="text/x-own")
    packed = agentbox(box, "pod", "export", "tar/").stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        read = {member.name: tar.extractfile(member) for member in tar}
        assert {name: file.read() for name, file in read.items() if file} == bodies
    assert documents(box, "pod", "import", "-", given=packed)["unchanged"] == 3
    client.pods.write("tar/a.txt", b"two", content_type="text/x-own")
    assert run(box, "pod", "import", "-", given=packed)[0] == ExitCode.BUSY
    counts = documents(box, "pod", "import", "--on-conflict", "replace", "-", given=packed)
    assert (counts["replaced"], counts["unchanged"]) == (1, 2)
    assert documents(box, "pod", "rm", "-r", "tar/")["removed"]
    assert documents(box, "pod", "import", "-", given=packed)["new"] == 3
    assert client.pods.read("tar/deep/b.bin") == bodies["tar/deep/b.bin"]
    assert client.pods.head("tar/a.txt").content_type == "text/x-own"


@pytest.mark.parametrize("kind", ["link", "outside", "cut", "other"])
def test_a_bad_tar_is_refused(box: ApiBox, client: BoxClient, kind: str) -> None:
    """A link, a name outside, an end that is missing, no tar at all; nothing of it is stored."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        info = tarfile.TarInfo("../bad-tar" if kind == "outside" else "bad-tar")
        if kind == "link":
            info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
            tar.addfile(info)
        else:
            info.size = 4000
            tar.addfile(info, io.BytesIO(b"x" * 4000))
    data = made.getvalue()
    given = {"cut": data[:2000], "other": b"no tar" * 200}.get(kind, data)
    code, _, err = run(box, "pod", "import", "-", given=given)
    assert (code, "Traceback" in err) == (ExitCode.USAGE, False), err
    assert "bad-tar" not in [meta.path for meta in client.pods.list().items]

"""Paths of the host and of the box in messages between an editor and the box."""

from pathlib import Path
from typing import Any

import pytest

from agentbox.host.acp.client_settings import CLIENTS, client_entry
from agentbox.host.acp.project_paths import OutsideProject, ProjectPaths


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    return folder


def request(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def test_the_folder_of_a_session(project: Path) -> None:
    """The project and what is in it; anything else is refused, also a folder whose name only
    begins like it."""
    paths = ProjectPaths(project)
    for given, expected in ((project, "/workspace"), (project / "src", "/workspace/src")):
        sent = paths.to_box(request("session/new", cwd=str(given), mcpServers=[]))
        assert sent["params"] == {"cwd": expected, "mcpServers": []}
    (project.parent / "project2").mkdir()
    for outside in (project.parent, project.parent / "project2", Path("/")):
        with pytest.raises(OutsideProject):
            paths.to_box(request("session/new", cwd=str(outside)))
    with pytest.raises(OutsideProject):
        paths.to_box(
            request("session/load", cwd=str(project), additionalDirectories=[str(project.parent)])
        )


def test_a_link_to_the_project_keeps_its_name(project: Path, tmp_path: Path) -> None:
    """The editor gets the paths that it knows."""
    link = tmp_path / "link"
    link.symlink_to(project)
    paths = ProjectPaths(project)
    sent = paths.to_box(request("session/new", cwd=str(link / "src")))
    assert sent["params"]["cwd"] == "/workspace/src"
    shown = paths.to_editor(request("fs/read_text_file", path="/workspace/a.py"))
    assert shown["params"]["path"] == str(link / "a.py")


def test_a_way_out_by_a_link_is_refused(project: Path) -> None:
    """The folder itself counts, not its name."""
    (project / "out").symlink_to("/")
    with pytest.raises(OutsideProject):
        ProjectPaths(project).to_box(request("session/new", cwd=str(project / "out")))


def test_every_path_of_an_update_is_that_of_the_host(project: Path) -> None:
    """Locations, diffs, links to resources and embedded ones; texts, inputs and other members
    stay."""
    update = {
        "sessionUpdate": "tool_call",
        "toolCallId": "1",
        "title": "reads /workspace/a",
        "locations": [{"path": "/workspace/a", "line": 3}, {"path": "/workspace2/a"}],
        "content": [
            {"type": "diff", "path": "/workspace/a b", "oldText": "/workspace", "newText": ""},
            {"type": "content", "content": {"type": "resource_link", "uri": "file:///workspace/a%20b"}},
            {"type": "content", "content": {"type": "resource", "resource": {"uri": "file:///workspace/c"}}},
            {"type": "content", "content": {"type": "text", "text": "/workspace/a"}},
        ],
        "rawInput": {"path": "/workspace/a"},
        "_meta": {"path": "/workspace/a"},
    }  # fmt: skip
    root = str(project)
    shown = ProjectPaths(project).to_editor(request("session/update", sessionId="s", update=update))
    found = shown["params"]["update"]
    assert found == {
        **update,
        "locations": [{"path": f"{root}/a", "line": 3}, {"path": "/workspace2/a"}],
        "content": [
            {"type": "diff", "path": f"{root}/a b", "oldText": "/workspace", "newText": ""},
            {"type": "content", "content": {"type": "resource_link", "uri": f"file://{root}/a%20b"}},
            {"type": "content", "content": {"type": "resource", "resource": {"uri": f"file://{root}/c"}}},
            {"type": "content", "content": {"type": "text", "text": "/workspace/a"}},
        ],
    }  # fmt: skip
    asked = request("session/request_permission", sessionId="s", toolCall=update, options=[])
    assert ProjectPaths(project).to_editor(asked)["params"]["toolCall"] == found


def test_prompts_and_answers(project: Path) -> None:
    """Links of a prompt go in; what a list of sessions says comes out; an error stays."""
    paths = ProjectPaths(project)
    link = {"type": "resource_link", "name": "a", "uri": f"file://{project}/a%23b"}
    other = {"type": "resource_link", "name": "w", "uri": "https://example.org/workspace"}
    sent = paths.to_box(request("session/prompt", sessionId="s", prompt=[link, other]))
    assert sent["params"]["prompt"] == [{**link, "uri": "file:///workspace/a%23b"}, other]
    answer = {"jsonrpc": "2.0", "id": 1, "result": {"sessions": [{"cwd": "/workspace/src"}]}}
    assert paths.to_editor(answer)["result"]["sessions"] == [{"cwd": f"{project}/src"}]
    failed = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "/workspace"}}
    assert paths.to_editor(failed) == failed
    empty = {"jsonrpc": "2.0", "id": 1, "result": None}
    assert paths.to_editor(empty) == paths.to_box(empty) == empty


@pytest.mark.parametrize("client", CLIENTS)
def test_the_entry_of_a_client_starts_the_bridge(client: str) -> None:
    """Words with spaces stay one word."""
    words = ["/opt/my box/agentbox.sh", "--manifest", "/a b/agentbox.toml", "acp"]
    file, text = client_entry(client, words)
    assert file
    for word in words:
        assert f'"{word}"' in text

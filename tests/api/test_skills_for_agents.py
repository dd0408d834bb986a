"""What agents are told of skills, in three ways with the same bytes, and what the API says of it."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from helpers import until
from support.skills_box import install_skills
from support.story_box import StoryBox

from agentbox.agents.runs.skill_links import EVERY_FOLDER
from agentbox.client import AgentApiClient, AgentApiDenied
from agentbox.manifest.skills.corpus import shipped_folders

SHOW = 'cd "$HOME" && for d in {folders}; do echo "$d: $(ls "$d" 2>/dev/null | tr "\\n" " ")"; done; cat .claude/skills/git-history/SKILL.md; echo x > .claude/skills/git-history/SKILL.md; echo "write: $?"; rm -r .claude; exit 0'
MANIFEST = """
[agents.reader]
command = ["sh", "-c", 'echo "$AGENTBOX_TOKEN"; exec sleep 1000']
skills = ["git-*"]
[agents.shower]
command = ["sh", "-c", '''{show}''']
skills = ["git-history"]
[agents.untold]
command = ["sh", "-c", '''{show}''']
skills = []
"""
NAMES = ["git-commits", "git-history", "git-rescue"]
MAIN = (shipped_folders()["git-history"] / "SKILL.md").read_text()


@pytest.fixture(scope="module")
def story(prefix: Path) -> Iterator[StoryBox]:
    show = SHOW.replace("{folders}", " ".join(EVERY_FOLDER))
    box = StoryBox(prefix, "", MANIFEST.replace("{show}", show), {})
    install_skills(box.paths)
    with box:
        yield box


@pytest.fixture(scope="module")
def token(story: StoryBox) -> str:
    agent = story.client.agents.spawn({"name": "reader", "agent": "reader"})

    def said() -> str:
        out = b"".join(
            item.data for item in story.client.agents.stream(agent.agent_id, follow=False)
            if item.kind == "stdout"
        )  # fmt: skip
        return out.decode().strip()

    return str(until(said, 30))


@pytest.fixture
def agent_api(story: StoryBox, token: str) -> Iterator[AgentApiClient]:
    with AgentApiClient(f"http://127.0.0.1:{story.port}", token) as client:
        yield client


def mcp(story: StoryBox, token: str, method: str, **params: Any) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
    url = f"http://127.0.0.1:{story.port}/mcp"
    return httpx.post(url, json=body, headers=headers, trust_env=False).json()


def test_an_agent_is_told_of_its_skills(agent_api: AgentApiClient) -> None:
    """In `hello` and by `skill.list`; `skill.read` returns the file itself."""
    told = agent_api.hello()["skills"]
    assert [row["name"] for row in told] == NAMES
    assert set(told[0]) == {"name", "description"}
    assert agent_api.call("skill.list") == {"skills": told}
    read = agent_api.call("skill.read", name="git-history")
    assert read == {
        "name": "git-history",
        "path": "SKILL.md",
        "files": ["SKILL.md"],
        "content": MAIN,
    }


@pytest.mark.parametrize("params", [{"name": "search-code"}, {"name": "../git-history"}, {"name": "git-history", "path": "../git-commits/SKILL.md"}])  # fmt: skip
def test_other_names_and_paths_are_unknown(agent_api: AgentApiClient, params: Any) -> None:
    """Neither a skill that it is not told of nor a path out of one."""
    with pytest.raises(AgentApiDenied) as refused:
        agent_api.call("skill.read", **params)
    assert refused.value.code == "not-found"


def test_mcp_serves_the_same(story: StoryBox, token: str) -> None:
    """The extension, with the digest of each file; its files as resources; and the tools."""
    capabilities = mcp(story, token, "initialize")["result"]["capabilities"]
    assert capabilities["extensions"] == {"io.modelcontextprotocol/skills": {}}
    assert "resources" in capabilities
    listed = mcp(story, token, "skills/list")["result"]
    assert [row["frontmatter"]["name"] for row in listed["skills"]] == NAMES
    assert (listed["resultType"], listed["cacheScope"]) == ("complete", "private")
    uri = "skill://git-history/SKILL.md"
    entry = mcp(story, token, "skills/get", uri=uri)["result"]["skill"]
    assert entry == listed["skills"][1]
    (content,) = mcp(story, token, "resources/read", uri=uri)["result"]["contents"]
    assert content == {"uri": uri, "mimeType": "text/markdown", "text": MAIN}
    digest = hashlib.sha256(MAIN.encode()).hexdigest()
    assert entry["resources"] == [
        {"uri": uri, "digest": f"sha256:{digest}", "size": len(MAIN.encode())}
    ]
    arguments = {"name": "git-history"}
    called = mcp(story, token, "tools/call", name="skill_read", arguments=arguments)["result"]
    assert called["structuredContent"]["content"] == MAIN
    resources = mcp(story, token, "resources/list")["result"]["resources"]
    assert [row["name"] for row in resources] == NAMES


@pytest.mark.parametrize("uri", ["skill://search-code/SKILL.md", "skill://git-history", "skill://git-history/../x", "file:///etc/passwd", 7])  # fmt: skip
def test_mcp_knows_no_other_resource(story: StoryBox, token: str, uri: Any) -> None:
    """Neither method answers for it."""
    for method in ("skills/get", "resources/read"):
        assert mcp(story, token, method, uri=uri)["error"]["code"] == -32602


def test_home_has_links_where_each_client_looks(story: StoryBox) -> None:
    """To files that the agent reads and cannot change, and only to those that it is told of."""
    ran = story.client.agents.run_once({"name": "shower", "agent": "shower"})
    said = ran.stdout.decode()
    for folder in EVERY_FOLDER:
        assert f"{folder}: git-history \n" in said
    assert MAIN in said
    assert said.endswith(("write: 2\n", "write: 1\n"))
    assert (story.paths.skills / "git-history/SKILL.md").read_text() == MAIN
    untold = story.client.agents.run_once({"name": "untold", "agent": "untold"}).stdout.decode()
    assert "git-history" not in untold.partition("write")[0]


def test_a_file_that_is_not_the_images_is_not_served(
    story: StoryBox, agent_api: AgentApiClient
) -> None:
    """Its digest is that of the catalogue, or there is no answer."""
    path = story.paths.skills / "git-rescue/SKILL.md"
    kept = path.read_bytes()
    path.chmod(0o644)
    path.write_text("obey me")
    try:
        with pytest.raises(AgentApiDenied) as refused:
            agent_api.call("skill.read", name="git-rescue")
    finally:
        path.write_bytes(kept)
    assert "not the file of the image" in refused.value.message


def test_the_api_lists_all_with_who_is_told(story: StoryBox) -> None:
    """With digests and files; what a skill asks for is shown and no more."""
    rows = {row.name: row for row in story.client.skills.list().items}
    assert set(rows) == set(shipped_folders())
    assert rows["git-history"].agents == ("reader", "shower")
    assert rows["search-code"].agents == ()
    assert rows["git-history"].digest.startswith("sha256:")
    assert [file.path for file in rows["git-history"].files] == ["SKILL.md"]


def test_the_catalogue_is_the_images(story: StoryBox) -> None:
    """Sorted by name."""
    assert [row["name"] for row in json.loads(story.paths.skill_catalogue.read_text())] == sorted(
        shipped_folders()
    )

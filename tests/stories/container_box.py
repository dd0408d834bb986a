"""A box in a container with both CLIs in its image, on a repository of the operator's, and a model server for each maker."""

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from clis import CLAUDE, CODEX, TASK, Agent
from support.model_server import ModelServer
from support.model_turns import ModelTurn
from terminal import Session
from trial import forget

from agentbox.core.paths import CHECKOUT
from agentbox.host.image.archive import read_archive

NAME, PORT = "story", 29690
AGENTS = (CLAUDE, CODEX)
KEYS = {agent.name: f"operator-{agent.name}-" + "0123456789abcdef" * 3 for agent in AGENTS}
PORTS = {agent.name: PORT + 3 + number for number, agent in enumerate(AGENTS)}
SECRETS = {agent.name: f"KEY_{agent.name.upper()}" for agent in AGENTS}
PID = f"$(docker inspect --format '{{{{.State.Pid}}}}' {NAME})"  # of the container's first process, on this machine
SEARCH = CHECKOUT / "tests/stories/key_search.py"
SOURCE = "def add(a, b):\n    return a - b\n"
TEST = 'from sums import add\n\nassert add(2, 3) == 5, add(2, 3)\nprint("tests pass")\n'
_HEAD = f"""\
meta = {{ schema_version = 1, name = "{NAME}" }}
api.port = {PORT}
observability.metrics_port = {PORT + 1}
toolchains = {{ claude_code = true, codex = true }}

[egress]
allow = ["docs.example.org"]

[policies.netted]
base = "sandboxed"
[[policies.netted.net]]
mode = "allow"
patterns = ["docs.example.org"]
"""
_AGENT = """
[providers.of-{name}]
enabled = true
kind = "{kind}"
base_url = "{url}"
env_var = "{secret}"

[agents.{name}]
command = {command}
preset = "{preset}"
provider = "of-{name}"
profile = "netted"
llm.max_tokens = 1000000  # of {name}
"""


class ContainerBox:
    """`folder` is the operator's: manifest, keys, the repository `sums`. `terminal` is where the operator works, `beside` a
    second one, in which the agents' memory is searched each time a model gives its last answer."""

    def __init__(self, folder: Path, address: str) -> None:
        self.folder = folder
        state = {"AGENTBOX_STATE_DIR": str(folder / "state")}
        self.terminal = Session(folder, {**state, "GIT_CONFIG_GLOBAL": str(folder / "gitconfig")})
        self.beside = Session(folder, state)
        self.servers = {
            agent.name: ModelServer(
                reply=self._say(agent), key=KEYS[agent.name], host=address, port=PORTS[agent.name]
            )
            for agent in AGENTS
        }  # fmt: skip
        (folder / "sums").mkdir()
        (folder / "sums/sums.py").write_text(SOURCE)
        (folder / "sums/test_sums.py").write_text(TEST)
        (folder / "gitconfig").write_text(
            "[user]\n\tname = operator\n\temail = operator@example.org\n"
        )
        (folder / "task.txt").write_bytes(TASK + b"\n")
        for agent in AGENTS:
            (folder / f"key-{agent.name}").write_text(KEYS[agent.name] + "\n")
        (folder / "agentbox.toml").write_text(
            _HEAD + "".join(_table(agent, address) for agent in AGENTS)
        )

    def asked(self, agent: Agent) -> str:
        """All that its maker's model was sent."""
        return str([request.body for request in self.servers[agent.name].requests])

    def source(self) -> str:
        return (self.folder / "sums/sums.py").read_text()

    def _say(self, agent: Agent) -> Any:
        script = agent.say(Path(f"/run/secrets/{SECRETS[agent.name]}"))

        def say(spoken: int, body: Mapping[str, Any]) -> ModelTurn:
            said = script(spoken, body)
            with (self.folder / f"model-{agent.name}.log").open("a") as log:
                log.writelines(f"{line}\n" for line in (*heard(body), *spoken_by(said)))
            if (
                not said.tool_uses
            ):  # the agent waits for its last answer: what it has in memory, it has now
                self.beside.type(f"python3 {SEARCH} key-{agent.name} {PID}")
            return said

        return say


def heard(body: Mapping[str, Any]) -> Iterator[str]:
    """The last input of the model: results of tools, in the form of either vendor."""
    parts = body["input"][-1:] if "input" in body else body["messages"][-1]["content"]
    for part in parts if isinstance(parts, list) else ():
        said = (
            part.get("output") or part.get("content")
            if part["type"] in ("tool_result", "function_call_output")
            else ""
        )
        yield from (f"  {line}" for line in str(said).strip().splitlines())


def spoken_by(said: ModelTurn) -> Iterator[str]:
    """The output of the model: words, and tools with their arguments."""
    yield from filter(None, (said.text,))
    for use in said.tool_uses:
        yield f"{use.name} {json.dumps(use.arguments)}"


@contextmanager
def opened(folder: Path) -> Iterator[ContainerBox]:
    """The model servers run; the test starts the box. Afterwards no container, volume or image of
    it remains. Raises AssertionError if this is not root: only root can read the memory of a
    container's processes."""
    assert os.geteuid() == 0, (
        "the story in a container looks into the memory of its agents: run it as root"
    )
    box = ContainerBox(folder, _address())
    with ExitStack() as stack:
        stack.callback(_remove, box)
        for server in box.servers.values():
            stack.enter_context(server)
        yield box


def agent_id(said: str) -> str:
    """The id that `agentbox run` prints at its end."""
    found = re.search(r"agentbox review show (\S+)", said)
    assert found is not None, said
    return found[1]


def _address() -> str:
    """This machine as containers see it: its address in the engine's default network."""
    words = [
        "docker",
        "network",
        "inspect",
        "bridge",
        "--format",
        "{{(index .IPAM.Config 0).Gateway}}",
    ]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def _table(agent: Agent, address: str) -> str:
    url = agent.base.replace("{url}", f"http://{address}:{PORTS[agent.name]}")
    return _AGENT.format(
        name=agent.name,
        kind=agent.kind,
        url=url,
        secret=SECRETS[agent.name],
        command=agent.command(agent.name),
        preset=agent.preset,
    )


def _remove(box: ContainerBox) -> None:
    link = box.folder / "state" / NAME / "image"
    archive = link.resolve() if link.exists() else None
    image = read_archive(archive).image_id if archive else ""
    box.beside.type("agentbox down --volumes --project --yes")
    if archive is not None:
        subprocess.run(
            ["docker", "image", "rm", "--force", image], capture_output=True, check=False
        )
        link.unlink()
        forget(archive)

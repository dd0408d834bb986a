"""Two unmodified agent CLIs in a container, from the lock to the commit, by the commands that an operator types."""

import re
from collections.abc import Iterator

import pytest
from cli_box import wait_for
from clis import END, Agent
from container_box import (
    AGENTS,
    KEYS,
    NAME,
    PID,
    PORT,
    SECRETS,
    SOURCE,
    ContainerBox,
    agent_id,
    opened,
)

from agentbox.core.paths import CHECKOUT

PAGES = CHECKOUT / "docs/stories"
MARGIN = 32_000  # tokens of the second run: some calls, not all
_USED = re.compile(r"tokens (\d+) of")
_SEARCHED = re.compile(
    r"processes of agents: (\d+); with the key: (\d+); with their own token: (\d+)"
)


@pytest.fixture(scope="module")
def record(request: pytest.FixtureRequest) -> bool:
    """Whether the sessions become pages."""
    return bool(request.config.getoption("--record", default=False))


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory, record: bool) -> Iterator[ContainerBox]:
    """Built, and up on the repository."""
    with opened(tmp_path_factory.mktemp("story")) as made:
        start(made)
        if record:
            (PAGES / "container-box.txt").write_text(made.terminal.page())
        yield made


def start(box: ContainerBox) -> None:
    """From the files of the operator to a box that is ready."""
    type_ = box.terminal.type
    type_("cat agentbox.toml task.txt sums/sums.py sums/test_sums.py")
    type_(
        "cd sums && git init -q && git add -A && git commit -qm 'It does not add' && git log --oneline"
    )
    for agent in AGENTS:
        type_(f"agentbox secrets set {SECRETS[agent.name]} < key-{agent.name}")
    type_(f"cp {CHECKOUT}/agentbox.lock . && agentbox lock", seconds=900)
    type_("agentbox build", seconds=3600)
    type_("agentbox up --yes --project sums", seconds=900)
    type_("agentbox status")


@pytest.mark.timeout(6000)  # seconds; the first to run builds the image
@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_the_whole_story(agent: Agent, box: ContainerBox, record: bool) -> None:
    """A run whose change is reviewed and committed, the key nowhere, two attempts to connect
    outside refused and counted; then a run that its budget ends half-way, and one that makes no
    call."""
    box.terminal.text = box.beside.text = ""
    made = it_mends_the_sum(agent, box)
    the_key_is_nowhere(agent, box)
    its_change_is_taken(made, box)
    a_budget_ends_it(agent, made, box)
    if record:
        (PAGES / f"container-{agent.name}.txt").write_text(box.terminal.page())


def it_mends_the_sum(agent: Agent, box: ContainerBox) -> str:
    """Its id."""
    ran = box.terminal.type(f"agentbox run --agent {agent.name} --input task.txt")
    box.terminal.remark("what the model asked for, and was told")
    box.terminal.type(f"cat model-{agent.name}.log")
    asked = box.asked(agent)
    assert END in ran
    assert "tests pass" in asked
    assert "HTTP Error 403" in asked  # through the proxy
    assert "PermissionError" in asked  # past it
    assert f"{SECRETS[agent.name]}: Permission denied" in asked
    assert KEYS[agent.name] not in ran + asked
    assert {request.key for request in box.servers[agent.name].requests} == {KEYS[agent.name]}
    assert box.source() == SOURCE  # the change is in its branch
    made = agent_id(ran)
    shown = denied(box, made, "proxy:net connect=", "reaper:connect=")
    assert "provider" in shown
    counted = box.terminal.type(
        f"curl -s http://127.0.0.1:{PORT + 1}/metrics | grep ^agentbox_denied_total"
    )
    for layer, rule in (("proxy", "net connect"), ("reaper", "connect")):
        assert re.search(f'agent="{agent.name}",layer="{layer}",rule="{rule}"}} [1-9]', counted), (
            counted
        )
    return made


def denied(box: ContainerBox, made: str, *rules: str) -> str:
    """What the operator sees of the agent, once those denials are counted: a moment after the agent
    got them."""
    line = f"agentbox agent show {made}"
    wait_for(
        lambda: all(rule in box.beside.type(line) for rule in rules), 30, f"{rules} are counted"
    )
    return box.terminal.type(line)


def the_key_is_nowhere(agent: Agent, box: ContainerBox) -> None:
    """Files of the container but the secret's own, the engine's description, and the agent's
    processes."""
    type_ = box.terminal.type
    assert type_(f"docker inspect {NAME} | grep -c -F -f key-{agent.name}", code=1) == "0\n"
    roots = "find . -mindepth 1 -maxdepth 1 -type d ! -name proc ! -name sys"
    found = type_(
        f'key=$PWD/key-{agent.name}; cd "/proc/{PID}/root" && grep -rlsF -f "$key" $({roots}) | sort'
    )
    assert found == f"./run/secrets/{SECRETS[agent.name]}\n"
    box.terminal.remark("in a second terminal, while the agent waited for its last answer")
    searched = next(line for line in box.beside.text.splitlines() if _SEARCHED.search(line))
    box.terminal.text += next(
        f"{line}\n{searched}\n" for line in box.beside.text.splitlines() if "key_search.py" in line
    )
    processes, keys, own = map(int, _SEARCHED.findall(searched)[0])
    assert processes > 0
    assert (keys, own) == (0, processes)


def its_change_is_taken(made: str, box: ContainerBox) -> None:
    """The operator reviews it and commits it."""
    type_ = box.terminal.type
    assert made in type_("agentbox review list")
    assert "+    return a + b" in type_(f"agentbox review show {made}")
    type_(f"agentbox review commit {made}")
    assert box.source() == SOURCE.replace("a - b", "a + b")
    assert "tests pass" in type_(
        "cd sums && python3 test_sums.py && git commit -qam 'It adds' && git show --stat"
    )


def a_budget_ends_it(agent: Agent, made: str, box: ContainerBox) -> None:
    """The rest is enough for some calls: the file is fixed again, the tests are not run."""
    type_, server = box.terminal.type, box.servers[agent.name]
    used = _USED.search(box.beside.type(f"agentbox agent show {made}"))
    assert used is not None
    box.terminal.remark("the mistake comes back, and the agent has little left to spend")
    type_("cd sums && git revert --no-edit HEAD && git log --oneline")
    cap = int(used[1]) + MARGIN
    type_(f"sed -i 's/= .*  # of {agent.name}$/= {cap}  # of {agent.name}/' agentbox.toml")
    type_("agentbox up --yes --project sums")
    before = len(server.requests)
    ran = type_(f"agentbox run --agent {agent.name} --input task.txt", code=1)
    asked = server.requests[before:]
    assert 1 <= len(asked) <= 3
    assert "tests pass" not in str([request.body for request in asked])
    assert END not in ran
    stopped = agent_id(ran)
    denied(box, stopped, "gateway:budget:tokens=")
    assert "+    return a + b" in type_(f"agentbox review show {stopped}")
    type_(f"agentbox review discard --yes {stopped}")
    type_(f"agentbox run --agent {agent.name} --input task.txt", code=1)
    assert len(server.requests) == before + len(asked)
    assert box.source() == SOURCE

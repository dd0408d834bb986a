"""session-host as supervisord starts it, against the real kernel: it has its socket, its store and its tokens."""

import json
import sys
from pathlib import Path

from support.plans import plan_of
from support.program_box import _SCRIPT, ProgramBox

from agentbox.plan.names import SESSION_HOST

ACP = '[agents.coder]\ncommand = ["coder"]\nprotocol = "acp"\n'


def test_it_runs_where_an_agent_speaks_acp_and_starts_here() -> None:
    """No other box has the program, nor its rights."""
    others = (
        "",
        ACP.replace('"acp"', '"stdio"'),
        f"{ACP}enabled = false\n",
        f'[adapters]\norchestrator.use = "off"\n{ACP}',
    )
    for manifest in others:
        plan = plan_of(manifest)
        assert SESSION_HOST not in {program.name for program in plan.programs}
        assert SESSION_HOST not in plan.rulesets
    assert plan_of(ACP).program(SESSION_HOST).required is False


def test_it_has_what_it_needs_and_nothing_else(tmp_path: Path) -> None:
    """Its folders are made and written, its tokens read; what is of others is closed, as is the network."""
    box = ProgramBox(tmp_path)
    box.write_plan(plan_of(ACP))
    paths = box.paths
    token = paths.agent_host_token(SESSION_HOST)
    token.parent.mkdir(parents=True)
    token.write_text("its own")
    foreign = paths.connections / "mcp-host" / "agent-host.token"
    foreign.parent.mkdir(parents=True)
    foreign.write_text("theirs")
    closed = {**box.closed, "foreign": foreign, "agent_host": paths.token("agent-host")}
    paths.token("agent-host").write_text("theirs")
    script = (
        _SCRIPT
        + """
closed = json.loads(sys.argv[1]); token, sock, store, work = sys.argv[2:]
def listen():
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(sock); server.listen(); unix(sock)
said(**{f"read {name}": tried(lambda: read(path)) for name, path in closed.items()},
     **{f"write {name}": tried(lambda: write(path)) for name, path in closed.items()},
     **{f"list {name}": tried(lambda: os.listdir(os.path.dirname(path))) for name, path in closed.items()},
     work=tried(lambda: os.listdir(work)), run=tried(lambda: os.listdir(os.path.dirname(work) + "/run/agentbox")),
     replace=tried(lambda: write(token)), link=tried(lambda: os.symlink("/etc/passwd", token + ".x")),
     connect=tried(lambda: connect(1)), serve=tried(lambda: serve(0)),
     own_token=tried(lambda: read(token)), own_socket=tried(listen), own_store=tried(lambda: write(store)))
"""
    )
    arguments = (
        json.dumps({name: str(path) for name, path in closed.items()}),
        token,
        paths.session_host_socket,
        paths.sessions / "sessions.db",
        paths.workspace,
    )
    program = box.start(sys.executable, "-I", "-c", script, *map(str, arguments), name=SESSION_HOST)
    out, err = program.communicate(timeout=60)
    assert program.returncode == 0, err
    found = json.loads(out)
    assert {found.pop(f"own_{name}") for name in ("token", "socket", "store")} == {"passed"}
    assert set(found.values()) == {"EACCES"}, found
    assert {path.read_text() for path in closed.values()} == {"theirs"}

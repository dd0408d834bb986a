"""Agent output is escaped: which commands print agent text, and that all use `Output`."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from agentbox.core.errors import AgentboxError
from agentbox.core.paths import CHECKOUT
from agentbox.host.cli.commands.agents.review_commits import print_diff
from agentbox.host.cli.log_line import LogLine
from agentbox.host.cli.main import COMMAND_HELP, cli
from agentbox.host.cli.output import Output

# TEXT: fields that an agent can set, printed by `Output`. BYTES: program output, printed by `AgentOutput` or
# the log view. NONE: nothing that an agent can set (operator names, numbers, files of the checkout).
TEXT, BYTES, NONE = "text", "bytes", "none"
COMMANDS = {
    "up": TEXT, "down": NONE, "uninstall": NONE, "restart": NONE, "restore": TEXT, "reset": TEXT, "status": TEXT, "health": TEXT, "logs": BYTES, "shell": NONE,
    "run": BYTES,
    "agent list": TEXT, "agent show": TEXT, "agent spawn": TEXT, "agent stop": TEXT, "agent logs": BYTES, "agent attach": BYTES,
    "agent revoke": TEXT, "task submit": TEXT, "task list": TEXT, "task show": TEXT, "task stop": TEXT, "task logs": BYTES,
    "sandbox create": NONE, "sandbox exec": BYTES, "sandbox cp": BYTES, "sandbox list": TEXT, "sandbox show": TEXT, "sandbox logs": BYTES,
    "sandbox signal": NONE, "sandbox end": TEXT,
    "review list": TEXT, "review show": TEXT, "review export": TEXT, "review commit": TEXT, "review discard": TEXT,
    "usage": TEXT, "prices update": NONE,
    "approvals list": TEXT, "approvals show": TEXT, "approvals approve": TEXT, "approvals deny": TEXT,
    "session new": NONE, "session prompt": BYTES, "session cancel": TEXT, "session list": TEXT, "session show": TEXT,
    "session attach": BYTES, "session answer": TEXT, "session transcript": TEXT, "session suspend": TEXT, "session resume": TEXT, "session close": TEXT,
    "acp config": NONE, "mcp config": NONE, "mcp list": TEXT, "mcp show": TEXT, "mcp test": TEXT, "mcp pin": TEXT, "mcp restart": TEXT,
    "user add": NONE, "user list": NONE, "user role": NONE, "user disable": NONE, "user enable": NONE, "user login": NONE,
    "login list": NONE, "login end": NONE,
    "token create": NONE, "token list": NONE, "token enable": NONE, "token revoke": NONE,
    "secrets set": NONE, "secrets list": NONE, "secrets remove": NONE, "state list": TEXT, "state show": TEXT, "state prune": TEXT, "state reset": TEXT, "state adopt": TEXT,
    "backup init": NONE, "backup create": TEXT, "backup list": TEXT, "backup show": TEXT, "backup verify": TEXT, "backup prune": TEXT, "backup export": BYTES,
    "mesh status": TEXT, "mesh join": TEXT, "mesh outbox list": TEXT, "mesh outbox drop": NONE,
    "events tail": TEXT, "events show": TEXT, "events search": TEXT, "events trace": TEXT, "events stats": TEXT, "events verify": TEXT, "events export": BYTES, "events prune": NONE,
    "events delivery": TEXT, "memory reembed": TEXT,
    "bead list": TEXT, "bead tree": TEXT, "bead ready": TEXT, "bead show": TEXT, "bead create": NONE, "bead claim": NONE, "bead release": TEXT,
    "bead close": TEXT, "bead dep": TEXT, "bead export": BYTES, "bead import": NONE,
    "pod ls": TEXT, "pod tree": TEXT, "pod stat": TEXT, "pod get": BYTES, "pod put": TEXT, "pod cp": TEXT, "pod rm": NONE, "pod export": BYTES, "pod import": NONE,
    "memory list": TEXT, "memory get": TEXT, "memory put": TEXT, "memory rm": NONE, "memory search": TEXT, "memory stats": TEXT, "memory export": BYTES, "memory import": NONE,
    "config validate": NONE, "config explain": NONE, "config show": NONE, "config diff": NONE,
    "skills list": TEXT, "skills show": TEXT, "skills check": TEXT, "skills add": TEXT, "skills remove": TEXT,
    "upgrade": TEXT, "rollback": TEXT, "generations list": NONE, "generations show": TEXT, "generations diff": TEXT, "generations pin": NONE, "generations prune": NONE,
    "lock": NONE, "fetch": NONE, "build": NONE, "verify": NONE, "render": NONE, "fmt": NONE, "doctor": TEXT,
    "boot explain": TEXT, "boot history": TEXT, "bench": NONE, "test": NONE,
    "completion bash": NONE, "completion zsh": NONE, "completion fish": NONE, "completion ids": TEXT,
}  # fmt: skip
# Files below agentbox/host/cli that write to a stream themselves, and what they write.
WRITERS = {
    "output.py": "the printer", "agent_output.py": "the printer of bytes", "stdio.py": "opens them", "progress_bars.py": "bars",
    "manifest_diff.py": "the manifest's text", "validation_run.py": "the manifest's text",
    "commands/agents/agent.py": "an error, made plain", "commands/agents/sandbox.py": "a file of a sandbox, to a file", "commands/box/doctor.py": "JSON and JUnit", "commands/data/events.py": "the log view",
    "commands/box/logs.py": "the log view", "commands/agents/task_output.py": "a sentence of its own", "stages/prerequisites.py": "a question",
}  # fmt: skip
HOSTILE = "\x1b]52;c;ZXZpbA==\x07\x1b[2J\r\n1  root  trusted\x9b31m\u202e\x00\x7f"
OBEYED = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def commands(group: click.Group, above: str = "") -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if isinstance(found, click.Group):
            yield from commands(found, f"{above}{name} ")
        else:
            yield f"{above}{name}"


def test_every_command_is_classified() -> None:
    """A new command must be classified."""
    assert isinstance(cli, click.Group)
    assert sorted(commands(cli)) == sorted(COMMANDS)
    assert {name.partition(" ")[0] for name in COMMANDS} == set(COMMAND_HELP)


def writes(path: Path) -> bool:
    """True if a file prints without `Output`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in (
            "print",
            "click.echo",
            "click.secho",
        ):
            return True
        if isinstance(node, ast.Attribute) and ast.unparse(node) in (
            "sys.stdout.write",
            "sys.stdout.buffer",
            "sys.stderr.write",
        ):
            return True
    return False


def test_commands_print_by_the_printer() -> None:
    """Only the listed files write to a stream."""
    folder = CHECKOUT / "agentbox/host/cli"
    found = {str(path.relative_to(folder)) for path in folder.rglob("*.py") if writes(path)}
    assert found <= set(WRITERS)


def test_raw_text_is_of_our_own_making() -> None:
    """Only these print text unchanged: rendered files, the manifest, an escape that erases, a line
    with its colour."""
    folder = CHECKOUT / "agentbox/host/cli"
    found = {
        path.name
        for path in folder.rglob("*.py")
        if ".out.raw(" in path.read_text() or " out.raw(" in path.read_text()
    }
    assert found == {
        "acp.py",
        "completion.py",
        "config.py",
        "mcp.py",
        "render.py",
        "review_commits.py",
        "status.py",
    }


def test_a_line_stays_one_line_and_obeys_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Results, notes, problems and the last sentence: no escape, no carriage return, no line of an agent's making."""
    out = Output()
    out.line(f"subject {HOSTILE}")
    out.note(f"note {HOSTILE}".replace("\n", ""))
    out.error(f"problem {HOSTILE}".replace("\n", ""))
    out.report_error(AgentboxError(f"cannot: {HOSTILE}".replace("\n", "")))
    out.block('{\n  "subject": "\x9b31m"\n}')
    said = capsys.readouterr()
    assert not OBEYED.search(said.out + said.err)
    assert said.out.splitlines()[0].startswith("subject \\x1b]52;c;")
    assert len(said.out.splitlines()) == 4
    assert len(said.err.splitlines()) == 3


def test_text_that_shows_nothing_is_an_escape(capsys: pytest.CaptureFixture[str]) -> None:
    """As in a review: bytes may be spelled in it, and a line of the log is of the same printer."""
    out = Output()
    for write in (out.line, out.block, out.note, out.error):
        write("a\u3164b\u2800c\ufe00d\U000e0100e")
    said = capsys.readouterr()
    shown = "a\\u3164b\\u2800c\\ufe00d\\U000e0100e"
    assert (said.out + said.err).splitlines() == [shown] * 4
    assert LogLine.parse("\ufe00").render(color=False) == "\\ufe00"


def test_json_obeys_nothing_either(capsys: pytest.CaptureFixture[str]) -> None:
    """Escapes of JSON, and the same text for the program that reads it."""
    out = Output(json=True)
    for write in (out.document, out.row):
        write({"subject": HOSTILE})
    out.note(HOSTILE)
    out.report_error(AgentboxError(HOSTILE))
    said = capsys.readouterr()
    assert not OBEYED.search(said.out + said.err)


def test_a_line_of_a_diff_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Characters that end a line elsewhere do not begin one here: its rest would look unchanged."""
    enders = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
    print_diff(Output(), "".join(f"+a{ender} evil\n" for ender in enders))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(enders)
    assert all(line.startswith("    +a\\") and line.endswith(" evil") for line in lines)

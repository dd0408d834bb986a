"""supervisord: its own reader gets from the text exactly what the plan contains."""

import os
import shlex
import string
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from supervisor.options import ServerOptions, UnhosedConfigParser
from support.plans import plan_of

from agentbox.core.paths import Paths
from agentbox.plan.model import Plan, Program, ReadySignal
from agentbox.plan.render.errors import RenderError
from agentbox.plan.render.supervisord import program_environment, supervisord

LAUNCHER = ("/opt/agentbox/venv/bin/python", "-I", "-m", "agentbox.box.programs.confined")
_NAMES = st.text(string.ascii_uppercase + string.digits + "_", min_size=1, max_size=8).filter(
    lambda s: s[0].isalpha()
)
_TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)


def _read(text: str) -> dict[str, object]:
    """Process configs by name, as supervisord makes them from that text."""
    parser = UnhosedConfigParser()
    options = ServerOptions()
    parser.expansions = options.environ_expansions
    parser.read_string(text)
    groups = options.process_groups_from_parser(parser)
    return {config.name: config for group in groups for config in group.process_configs}


def _one(argv: tuple[str, ...], env: dict[str, str]) -> Plan:
    program = Program(
        name="p",
        priority=50,
        argv=argv,
        env=env,
        required=False,
        ready=ReadySignal(by="state"),
        directory="/tmp",
    )
    return replace(plan_of(), programs=(program,))


def _rendered(plan: Plan) -> str | RenderError:
    try:
        return supervisord(plan)
    except RenderError as error:
        return error


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(_TEXT, max_size=4), st.dictionaries(_NAMES, _TEXT, max_size=4))
def test_the_reader_gets_argv_and_environment_back_or_the_renderer_refuses(
    words: list[str], env: dict[str, str]
) -> None:
    """For every text: either supervisord would run exactly these words with exactly these variables, or a typed error
    names the program. Nothing is cut, expanded or unquoted on the way."""
    argv = ("/bin/true", *words)
    text = _rendered(_one(argv, env))
    if isinstance(text, RenderError):
        assert "program p" in text.message
        return
    config = _read(text)["p"]
    assert tuple(shlex.split(config.command)) == argv  # type: ignore[attr-defined]  # as supervisor.process does
    assert config.environment == env  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "word",
    [
        "plain",
        "50%",
        "%(here)s",
        'a"b',
        "it's",
        "back\\slash",
        "a b",
        "a;b",
        "a#b",
        "tab\tx",
        "",
        "é",
        "$HOME",
        "=",
        ",",
    ],
)
def test_these_survive(word: str) -> None:
    """Positive control of the property: the reader's special characters are not all refused."""
    config = _read(supervisord(_one(("/bin/echo", word), {"V": word})))["p"]
    assert shlex.split(config.command) == ["/bin/echo", word]  # type: ignore[attr-defined]
    assert config.environment == {"V": word}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("argv", "env", "said"),
    [
        (("/bin/echo", "a ;b"), {}, "program p, argv"),
        (("/bin/echo", "a\t#b"), {}, "white space followed by ; or #"),
        (("/bin/echo", "a\nb"), {}, "a line break or NUL"),
        (("/bin/echo",), {"V": "a\0b"}, "program p, env V"),
        (("/bin/echo",), {"V": "'quoted'"}, "a quote at its start or end"),
        (("/bin/echo",), {"V": "both ' and \" in"}, "both kinds of quotes"),
        (("/bin/echo",), {"A-B": "x"}, "a variable name"),
    ],
)
def test_what_has_no_escape_is_refused_by_program_and_key(
    argv: tuple[str, ...], env: dict[str, str], said: str
) -> None:
    """supervisord would cut these silently."""
    with pytest.raises(RenderError) as caught:
        supervisord(_one(argv, env))
    assert said in caught.value.message


def test_the_whole_plan_is_read_back() -> None:
    """Every program of the registry, with argv, environment, order of stopping, and log on the container's stdout."""
    plan = plan_of()
    configs = _read(supervisord(plan))
    assert set(configs) == {program.name for program in plan.programs} != set()
    for program in plan.programs:
        config = configs[program.name]
        confined = program.name in plan.rulesets
        argv = (*LAUNCHER, program.name, *program.argv) if confined else program.argv
        assert tuple(shlex.split(config.command)) == argv  # type: ignore[attr-defined]
        home = {"HOME": "/workspace"} if confined else {}
        assert config.environment == {**home, **program.env}  # type: ignore[attr-defined]
        assert config.stopwaitsecs == program.stop_seconds  # type: ignore[attr-defined]
        assert config.stdout_logfile == "/dev/fd/1"  # type: ignore[attr-defined]
        assert (config.stopasgroup, config.killasgroup, config.redirect_stderr) == (
            True,
            True,
            True,
        )  # type: ignore[attr-defined]
        assert bool(config.autorestart) is not program.once  # type: ignore[attr-defined]


def test_features_stop_before_what_they_use_and_the_seal_starts_last() -> None:
    """supervisord starts groups by ascending priority and stops them the other way round."""
    editor = Program(
        name="editor",
        priority=60,
        argv=("/bin/true",),
        required=False,
        ready=ReadySignal(by="state"),
        group="features",
    )
    plan = replace(plan_of(), programs=(*plan_of().programs, editor))
    parser = UnhosedConfigParser()
    options = ServerOptions()
    parser.expansions = options.environ_expansions
    parser.read_string(supervisord(plan))
    groups = sorted(options.process_groups_from_parser(parser), key=lambda group: group.priority)
    assert [group.name for group in groups] == [
        "management-api",
        "gateway",
        "agent-host",
        "features",
        "once",
    ]


def test_below_a_prefix_our_programs_and_paths_move_and_are_told(tmp_path: Path) -> None:
    """The process engine's file names no path of ours outside the prefix, and each program gets AGENTBOX_PREFIX."""
    paths = Paths(tmp_path)
    plan = plan_of()
    text = supervisord(plan, paths)
    configs = _read(text)
    for program in plan.programs:
        config = configs[program.name]
        assert config.command.startswith(f"{tmp_path}/opt/agentbox/venv/bin/python ")  # type: ignore[attr-defined]
        confined = program.name in plan.rulesets
        home = {"HOME": f"{tmp_path}/workspace"} if confined else {}
        assert config.environment == {**home, **program.env, "AGENTBOX_PREFIX": str(tmp_path)}  # type: ignore[attr-defined]
        assert config.environment == program_environment(program, paths, confined=confined)  # type: ignore[attr-defined]
    assert "=/opt/agentbox" not in text
    assert "=/run" not in text
    assert "=/var" not in text


def test_a_tool_of_the_distribution_stays_where_it_is(tmp_path: Path) -> None:
    """Under the process engine a feature uses the host's tools."""
    config = _read(supervisord(_one(("/usr/bin/editor",), {}), Paths(tmp_path)))["p"]
    assert config.command == "/usr/bin/editor"  # type: ignore[attr-defined]
    assert config.directory == f"{tmp_path}/tmp"  # type: ignore[attr-defined]


def test_supervisord_itself_accepts_the_whole_file(tmp_path: Path) -> None:
    """Its own start-up path reads the file: foreground, silent, socket for the owner only, credentials included."""
    paths = Paths(tmp_path)
    for folder in (paths.logs / "supervisor", paths.run):
        folder.mkdir(parents=True)
    paths.supervisor_auth.write_text("[unix_http_server]\nusername=u\npassword={SHA}x\n")
    file = tmp_path / "supervisord.conf"
    file.write_text(supervisord(plan_of(), paths))
    options = ServerOptions()
    options.realize(["-c", str(file)], doc="")
    assert (options.nodaemon, options.silent, options.strip_ansi) == (True, True, True)
    assert options.logfile == str(paths.logs / "supervisor/supervisord.log")
    server = options.server_configs[0]
    assert (server["file"], server["chmod"], server["username"]) == (
        str(paths.supervisor_socket),
        0o700,
        "u",
    )
    assert os.path.commonpath([options.pidfile, str(tmp_path)]) == str(tmp_path)

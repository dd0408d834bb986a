"""Entry point: table of commands, common flags, conversion of errors to text and exit codes."""

import errno
import os
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import click

from agentbox import __version__
from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.paths import environment, name_this_command
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.output import Output
from agentbox.host.cli.stdio import discard_unwritten, reopen_closed
from agentbox.host.engines.interrupts import unify_signals

# Failures of the host: full or read-only disk, quota, permission. Any other OSError is a bug.
_HOST_ERRNOS = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.EIO,
    errno.EMFILE,
    errno.ENOMEM,
    errno.EBADF,  # standard output was closed
}

COMMAND_HELP: dict[str, str] = {
    "up": "start the box: install prerequisites, build, run, wait until it is ready",
    "down": "stop the box and remove its container",
    "upgrade": "bring the box to a new release or manifest, with a way back",
    "rollback": "go back to an earlier generation",
    "generations": "what ran before: list, show, diff, pin, prune",
    "restore": "bring back the state of a snapshot",
    "reset": "start the box anew, as after its first boot, with a way back",
    "restart": "restart the box in place",
    "uninstall": "remove from this host what agentbox made there",
    "status": "show what runs and whether it is ready",
    "health": "show the box's health and metrics",
    "logs": "show the log of the box",
    "shell": "open a shell inside the box",
    "run": "run one command in the box as an agent",
    "agent": "manage agents: list, show, spawn, stop, logs, attach, revoke",
    "sandbox": "run programs in a sandbox: create, exec, cp, list, show, logs, signal, end",
    "task": "manage tasks: submit, list, show, stop, logs",
    "review": "review changes made by agents: list, show, export, commit, discard",
    "usage": "show tokens and cost of model calls",
    "approvals": "list and decide pending approvals: list, show, approve, deny",
    "session": "work with agents that speak ACP: new, prompt, cancel, list, show, attach, answer, "
    "transcript, suspend, resume, close",
    "acp": "serve the box as an agent for editors: config",
    "mcp": "tools for desktop clients; MCP servers: config, list, pin, restart, show, test",
    "token": "manage API tokens: create, list, enable, revoke",
    "user": "manage people who operate the box: add, list, role, disable, enable, login",
    "login": "manage sessions of people: list, end",
    "secrets": "manage secrets of the box: set, list, remove",
    "mesh": "manage the federation: status, join, outbox",
    "events": "read the journal: tail, show, search, trace, stats, verify, export, prune, delivery",
    "bead": "manage beads: list, tree, ready, show, create, claim, release, close, dep, export, "
    "import",
    "pod": "manage pods: ls, tree, stat, get, put, cp, rm, export, import",
    "memory": "manage the memory: list, get, put, rm, search, stats, export, import, reembed",
    "backup": "back the box up: init, create, list, show, verify, prune, export",
    "state": "manage memory and pods of runs: list, show, reset, prune, adopt",
    "config": "check and inspect the manifest: validate, explain, show, diff",
    "prices": "write prices of models to the manifest: update",
    "skills": "manage the skills of the image: list, show, check, add, remove",
    "lock": "resolve the packages of the image and write agentbox.lock",
    "fetch": "download locked packages into the Nix store",
    "build": "build the image and load it into the engine",
    "verify": "rebuild everything and compare",
    "render": "write the generated files",
    "fmt": "format the sources and the lock file",
    "doctor": "check this host and the running box",
    "boot": "inspect boots: explain, history",
    "completion": "print the completion of a shell: bash, zsh, fish, ids",
    "bench": "run the benchmarks of this box on this host",
    "test": "run the test suites",
}
COMMAND_PACKAGES: dict[str, tuple[str, ...]] = {  # packages of `commands`
    "box": (
        "up",
        "down",
        "upgrade",
        "rollback",
        "generations",
        "restore",
        "reset",
        "restart",
        "uninstall",
        "status",
        "health",
        "logs",
        "shell",
        "token",
        "user",
        "login",
        "mesh",
        "doctor",
        "boot",
    ),
    "agents": (
        "run",
        "agent",
        "sandbox",
        "task",
        "review",
        "usage",
        "approvals",
        "session",
        "acp",
        "mcp",
    ),
    "data": ("secrets", "events", "bead", "pod", "memory", "state", "backup"),
    "build": ("config", "prices", "skills", "lock", "fetch", "build", "verify", "render"),
    "dev": ("fmt", "completion", "bench", "test"),
}


OTHER_NAMES: dict[str, str] = {"journal": "events"}


class LazyGroup(click.Group):
    """Imports the module of a command only when it is called, for a fast start."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMAND_HELP)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        cmd_name = OTHER_NAMES.get(cmd_name, cmd_name)
        if cmd_name not in COMMAND_HELP:
            return None
        package = next(
            subject for subject, commands in COMMAND_PACKAGES.items() if cmd_name in commands
        )
        command: click.Command = import_module(
            f"agentbox.host.cli.commands.{package}.{cmd_name}"
        ).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMAND_HELP.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMAND_HELP | OTHER_NAMES:
            import difflib

            suggestions = difflib.get_close_matches(args[0], COMMAND_HELP, n=1)
            hint = f" Did you mean `{suggestions[0]}`?" if suggestions else ""
            ctx.fail(f"unknown command: {args[0]}.{hint}")
        return super().resolve_command(ctx, args)


class Seconds(click.FloatRange):
    """Seconds above zero; neither infinity nor NaN."""

    name = "seconds"

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True, max=366 * 86400)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        seconds = super().convert(value, param, ctx)
        if seconds != seconds:
            self.fail(f"{value} is not a number of seconds.", param, ctx)
        return seconds


@click.group(
    cls=LazyGroup,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="agentbox")
@click.option(
    "--manifest",
    type=click.Path(path_type=Path),
    default=None,
    help="The manifest. [default: ./agentbox.toml]",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="One JSON document on stdout, progress as JSON lines on stderr.",
)
@click.option("--quiet", is_flag=True, help="Print results and errors only.")
@click.option("--no-color", is_flag=True, help="No colour, even on a terminal.")
@click.option(
    "--timeout", type=Seconds(), default=None, metavar="S", help="Give up waiting after S seconds."
)
@click.pass_context
def cli(
    ctx: click.Context,
    manifest: Path | None,
    as_json: bool,
    quiet: bool,
    no_color: bool,
    timeout: float | None,
) -> None:
    """agentbox: a sandbox for autonomous coding agents."""
    ctx.obj = CliContext(
        manifest_argument=manifest, json=as_json, quiet=quiet, color=not no_color, timeout=timeout
    )


def main(arguments: list[str] | None = None) -> NoReturn:
    """Runs the command line and exits. A user error prints a message and a hint, a bug a
    traceback."""
    unify_signals()
    reopen_closed()
    name_this_command(f"{os.getpid()}:{_start_ticks()}")
    argv = sys.argv[1:] if arguments is None else arguments
    out = Output(json="--json" in argv[: _command_index(argv)])
    try:
        if environment().get("AGENTBOX_CA_BUNDLE"):
            from agentbox.host.network.adopt import adopt_authorities

            adopt_authorities()
        result = cli.main(argv, prog_name="agentbox", standalone_mode=False)
        sys.stdout.flush()
    except AgentboxError as error:
        _exit_with_error(out, error)
    except (KeyboardInterrupt, click.exceptions.Abort):
        # After an interrupt within an `exec` of text (a dataclass definition, for example) CPython
        # ends with the signal, handled or not, unless another `exec` of text follows
        # (Python/pythonrun.c, run_eval_code_obj).
        exec("")
        _exit_with_error(out, AgentboxError("interrupted", exit_code=ExitCode.INTERRUPTED))
    except click.ClickException as error:
        _print_usage_error(out, error)
        sys.exit(ExitCode.USAGE)
    except BrokenPipeError:
        discard_unwritten()
        sys.exit(ExitCode.BAD)
    except OSError as error:
        if error.errno not in _HOST_ERRNOS:
            raise
        _exit_with_error(out, _host_error(error, argv))
    sys.exit(result if isinstance(result, int) else ExitCode.DONE)


def _start_ticks() -> str:
    """The kernel's start time of this process, field 22 of proc_pid_stat(5)."""
    return Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]


def _exit_with_error(out: Output, error: AgentboxError) -> NoReturn:
    """Prints the error, if stderr can be written, and exits with its code."""
    with suppress(OSError):
        out.report_error(error)
    discard_unwritten()
    sys.exit(int(error.exit_code))


def _command_index(argv: list[str]) -> int:
    return next(
        (index for index, argument in enumerate(argv) if argument in COMMAND_HELP | OTHER_NAMES),
        len(argv),
    )


def _print_usage_error(out: Output, error: click.ClickException) -> None:
    if out.json:
        out.report_error(AgentboxError(error.format_message(), exit_code=ExitCode.USAGE))
    else:
        error.show()


def _host_error(error: OSError, argv: list[str]) -> AgentboxError:
    """The error for an unexpected failure of the host's disk or permissions."""
    command = next((argument for argument in argv if argument in COMMAND_HELP), "agentbox")
    path = error.filename2 or error.filename  # filename2: the target of a copy
    location = f": {path}" if path else ""
    return AgentboxError(
        f"cannot finish {command}{location}: {error.strerror}",
        "Fix that and run the command again; it resumes from there.",
        exit_code=ExitCode.PREREQUISITE,
    )

"""The table of verbs, the common flags, and the one place where an error becomes text and an exit code."""

import errno
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import click

from agentbox import __version__
from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.output import Output
from agentbox.host.cli.stdio import discard_unwritten, reopen_closed
from agentbox.host.engines.interrupts import unify_signals

# What a host may refuse at any moment: a full or read-only disk, a quota, a right. Any other OSError is a bug.
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

COMMAND_MODULES: dict[str, str] = {
    "up": "start the box: set up what is missing, build, run, wait until it is ready",
    "down": "stop the box and remove its container",
    "restart": "restart the box in place",
    "status": "what runs, and whether it is ready",
    "health": "what the box says of itself, and its metrics",
    "logs": "what the box prints",
    "shell": "a shell inside the box",
    "run": "run one command in the box as an agent",
    "agent": "agents: list, show, spawn, stop, logs, attach, revoke",
    "task": "tasks: submit, list, show, stop, logs",
    "review": "what agents changed: list, show, commit, discard",
    "approvals": "actions that wait for you: list, show, approve, deny",
    "token": "named tokens of the API: create, list, revoke",
    "secrets": "what programs of the box need and nobody may read: set, list, remove",
    "mesh": "the federation: status, join, outbox",
    "events": "the journal: tail, show, verify, export, prune, delivery",
    "memory": "what the box remembers: reembed",
    "state": "memory and pods of runs: list, show, reset, prune, adopt",
    "config": "the manifest: validate, explain, show, diff",
    "lock": "resolve the packages of the image and write agentbox.lock",
    "fetch": "bring the locked packages into the Nix store",
    "build": "build the image and load it into the engine",
    "verify": "derive everything again and compare",
    "render": "write the generated files",
    "fmt": "the sources and the lock in their one form",
    "doctor": "is this host fit, and is the box as its plan promises",
    "boot": "boots: explain, history",
    "bench": "measure this box on this host",
    "test": "run the test suites",
}
COMMAND_PACKAGES: dict[str, tuple[str, ...]] = {  # the packages of `commands`, each with its verbs
    "box": (
        "up",
        "down",
        "restart",
        "status",
        "health",
        "logs",
        "shell",
        "token",
        "mesh",
        "doctor",
        "boot",
    ),
    "agents": ("run", "agent", "task", "review", "approvals"),
    "data": ("secrets", "events", "memory", "state"),
    "build": ("config", "lock", "fetch", "build", "verify", "render"),
    "dev": ("fmt", "bench", "test"),
}


class LazyGroup(click.Group):
    """Imports a verb's file only when the verb is called, so that the command line starts fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMAND_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMAND_MODULES:
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
            formatter.write_dl(list(COMMAND_MODULES.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMAND_MODULES:
            import difflib

            suggestions = difflib.get_close_matches(args[0], COMMAND_MODULES, n=1)
            hint = f" Did you mean `{suggestions[0]}`?" if suggestions else ""
            ctx.fail(f"no such command: {args[0]}.{hint}")
        return super().resolve_command(ctx, args)


class Seconds(click.FloatRange):
    """A span of time above zero: no infinity, no NaN."""

    name = "seconds"

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True, max=366 * 86400)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        seconds = super().convert(value, param, ctx)
        if seconds != seconds:
            self.fail(f"{value} is no number of seconds.", param, ctx)
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
    """agentbox: the room that autonomous coding agents live in."""
    ctx.obj = CliContext(
        manifest_argument=manifest, json=as_json, quiet=quiet, color=not no_color, timeout=timeout
    )


def main(arguments: list[str] | None = None) -> NoReturn:
    """Runs the command line and exits. A bug prints a traceback; a user's mistake one sentence and a hint."""
    unify_signals()
    reopen_closed()
    argv = sys.argv[1:] if arguments is None else arguments
    out = Output(json="--json" in argv[: _command_index(argv)])
    try:
        result = cli.main(argv, prog_name="agentbox", standalone_mode=False)
        sys.stdout.flush()
    except AgentboxError as error:
        _exit_with_error(out, error)
    except (KeyboardInterrupt, click.exceptions.Abort):
        # An interrupt that left an `exec` of text (a dataclass being made, say) has CPython end with the signal, handled or not,
        # unless another `exec` of text came after it (Python/pythonrun.c, run_eval_code_obj).
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


def _exit_with_error(out: Output, error: AgentboxError) -> NoReturn:
    """Says why, where that can be said, and leaves with the exit code that was said."""
    with suppress(OSError):
        out.report_error(error)
    discard_unwritten()
    sys.exit(int(error.exit_code))


def _command_index(argv: list[str]) -> int:
    return next(
        (index for index, argument in enumerate(argv) if argument in COMMAND_MODULES), len(argv)
    )


def _print_usage_error(out: Output, error: click.ClickException) -> None:
    if out.json:
        out.report_error(AgentboxError(error.format_message(), exit_code=ExitCode.USAGE))
    else:
        error.show()


def _host_error(error: OSError, argv: list[str]) -> AgentboxError:
    """The sentence for a disk or a right that no part of the program expected to miss."""
    command = next((argument for argument in argv if argument in COMMAND_MODULES), "agentbox")
    path = error.filename2 or error.filename  # of a copy the second is where it goes
    location = f": {path}" if path else ""
    return AgentboxError(
        f"cannot finish {command}{location}: {error.strerror}",
        "Mend that and run the command again; it goes on from there.",
        exit_code=ExitCode.PREREQUISITE,
    )

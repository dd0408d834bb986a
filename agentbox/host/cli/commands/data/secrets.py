"""`agentbox secrets`: values that go into the box as files, and never onto a screen."""

from __future__ import annotations

import re
import sys

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.context import Cli

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_LARGEST = 64 << 10  # bytes; compose and Kubernetes take more, no program of ours does


def _name(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    if not _NAME.fullmatch(value):
        raise click.BadParameter("must be the name of a variable")
    return value


@click.group(name="secrets")
def command() -> None:
    """Keys and tokens of this box. The manifest names them (`providers.<name>.env_var`, `*_env`, `agents.<name>.secrets`).

    A value comes from the environment of `up`, else from the `.env` beside the manifest, else from here.
    """


@command.command(name="set")
@click.argument("name", callback=_name)
@click.pass_obj
def set_(cli: Cli, name: str) -> None:
    """Keep a value, read from stdin: `agentbox secrets set NAME < file`. At a terminal it is asked for and not shown.

    One line end at its end is taken off. The next `agentbox up` gives it to the box.
    """
    from agentbox.host.engines.secrets import keep, source_of

    value = _value(name)
    folder = cli.state().secrets_dir
    with cli.state().exclusively():
        keep(folder, name, value)
    cli.out.document({"set": name})
    cli.out.line(f"set {name}")
    if name not in _needed(cli):
        cli.out.note(f"no key of the manifest that is on names {name}: the box does not get it")
    elif (source := source_of(name, cli.manifest, folder)) != "set":
        cli.out.note(f"the {source} has a value of {name} too, which goes first")
    else:
        cli.out.note("./agentbox.sh up gives it to the box, which boots again if it runs")


@command.command(name="list")
@click.pass_obj
def list_(cli: Cli) -> None:
    """List the names that the box needs and those that are kept, and where each value comes from. No value is read out."""
    from agentbox.host.engines.secrets import kept_names, source_of

    folder = cli.state().secrets_dir
    needed = _needed(cli)
    names = sorted({*needed, *kept_names(folder)})
    items = [
        {"name": name, "needed": name in needed, "source": source_of(name, cli.manifest, folder) or ""}
        for name in names
    ]
    cli.out.document(items)
    for item in items:
        source = item["source"] or "not set"
        cli.out.line(f"{item['name']}  {source}{'' if item['needed'] else '  (no key of the manifest names it)'}")


@command.command()
@click.argument("name", callback=_name)
@click.pass_obj
def remove(cli: Cli, name: str) -> None:
    """Forget a value that was set. The box has its copy until the next `agentbox up`."""
    from agentbox.host.engines.secrets import forget

    with cli.state().exclusively():
        found = forget(cli.state().secrets_dir, name)
    if not found:
        raise AgentboxError(f"cannot remove {name}: it was not set", "See `agentbox secrets list`.")
    cli.out.document({"removed": name})
    cli.out.line(f"removed {name}")


def _needed(cli: Cli) -> tuple[str, ...]:
    """The names that the box gets, as the plan has them: a lock is not needed for that."""
    from agentbox.manifest.keys import apply_class
    from agentbox.plan.secrets import secret_names
    from agentbox.plan.values import by_key, in_bytes

    values = by_key(in_bytes(cli.load_manifest().usable))
    return secret_names(values, {key: apply_class(key) for key in values})


def _value(name: str) -> str:
    """What stdin has. Raises AgentboxError (exit 2) for nothing, a placeholder, or what is no text."""
    from agentbox.box.supervision.secrets import is_placeholder

    if sys.stdin.isatty():
        raw = click.prompt(f"value of {name}", hide_input=True, err=True).encode()
    else:
        raw = sys.stdin.buffer.read(_LARGEST + 1)
    why = ""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text, why = "", "it is no UTF-8 text"
    value = text.removesuffix("\n").removesuffix("\r")
    if len(raw) > _LARGEST:
        why = f"it is longer than {_LARGEST} bytes"
    elif "\0" in value:
        why = "it holds a zero byte"
    elif not why and not value.strip():
        why = "stdin has no value"
    elif not why and is_placeholder(value.strip()):
        why = "the value only marks the place of one"
    if why:
        raise AgentboxError(
            f"cannot set {name}: {why}", f"Give the value on stdin: agentbox secrets set {name} < file",
            exit_code=ExitCode.USAGE,
        )  # fmt: skip
    return value

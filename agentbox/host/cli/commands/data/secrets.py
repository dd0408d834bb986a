"""`agentbox secrets`: values passed to the box as files and never printed."""

from __future__ import annotations

import re
import sys

import click

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.context import CliContext

_NAME_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_MAX_BYTES = 64 << 10  # bytes; compose and Kubernetes accept more, agentbox does not


def _validate_name(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    if not _NAME_PATTERN.fullmatch(value):
        raise click.BadParameter("must be a variable name")
    return value


@click.group(name="secrets")
def command() -> None:
    """Manage keys and tokens of this box.

    The manifest names them (`providers.<name>.env_var`, `*_env`, `agents.<name>.secrets`). A value
    comes from the environment of `up`, else from `.env` beside the manifest, else from here.
    """


@command.command(name="set")
@click.argument("name", callback=_validate_name)
@click.pass_obj
def set_(cli: CliContext, name: str) -> None:
    """Store a value read from stdin: `agentbox secrets set NAME < file`.

    A terminal prompts without echo. One trailing line break is removed. The next `agentbox up`
    passes the value to the box.
    """
    from agentbox.host.engines.secrets import secret_source, store_secret

    value = _read_value(name)
    directory = cli.state().secrets_dir
    with cli.state().exclusive_lock():
        store_secret(directory, name, value)
    cli.out.document({"set": name})
    cli.out.line(f"set {name}")
    if name not in _required_names(cli):
        cli.out.note(f"no active key of the manifest names {name}: it is not passed to the box")
    elif (source := secret_source(name, cli.manifest, directory)) != "set":
        cli.out.note(f"the {source} also has a value of {name}, which takes precedence")
    else:
        cli.out.note("./agentbox.sh up passes it to the box, which restarts if it runs")


@command.command(name="list")
@click.pass_obj
def list_(cli: CliContext) -> None:
    """List the required and stored names and the source of each value. Prints no values."""
    from agentbox.host.engines.secrets import secret_source, stored_names

    directory = cli.state().secrets_dir
    required = _required_names(cli)
    names = sorted({*required, *stored_names(directory)})
    items = [
        {
            "name": name,
            "needed": name in required,
            "source": secret_source(name, cli.manifest, directory) or "",
        }
        for name in names
    ]
    cli.out.document(items)
    for item in items:
        source = item["source"] or "not set"
        cli.out.line(
            f"{item['name']}  "
            f"{source}{'' if item['needed'] else '  (no key of the manifest names it)'}"
        )


@command.command()
@click.argument("name", callback=_validate_name)
@click.pass_obj
def remove(cli: CliContext, name: str) -> None:
    """Remove a stored value. The box keeps its copy until the next `agentbox up`."""
    from agentbox.host.engines.secrets import remove_secret

    with cli.state().exclusive_lock():
        removed = remove_secret(cli.state().secrets_dir, name)
    if not removed:
        raise AgentboxError(f"cannot remove {name}: it is not set", "See `agentbox secrets list`.")
    cli.out.document({"removed": name})
    cli.out.line(f"removed {name}")


def _required_names(cli: CliContext) -> tuple[str, ...]:
    """Names of the secrets of the plan; needs no lock."""
    from agentbox.manifest.keys import apply_class
    from agentbox.plan.secrets import secret_names
    from agentbox.plan.values import flatten_keys, sizes_to_bytes

    values = flatten_keys(sizes_to_bytes(cli.load_manifest().usable))
    return secret_names(values, {key: apply_class(key) for key in values})


def _read_value(name: str) -> str:
    """Reads the value. Raises AgentboxError (exit 2) if it is empty, a placeholder or not text."""
    from agentbox.box.supervision.secrets import is_placeholder

    if sys.stdin.isatty():
        raw = click.prompt(f"value of {name}", hide_input=True, err=True).encode()
    else:
        raw = sys.stdin.buffer.read(_MAX_BYTES + 1)
    reason = ""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text, reason = "", "it is not valid UTF-8"
    value = text.removesuffix("\n").removesuffix("\r")
    if len(raw) > _MAX_BYTES:
        reason = f"it is longer than {_MAX_BYTES} bytes"
    elif "\0" in value:
        reason = "it contains a zero byte"
    elif not reason and not value.strip():
        reason = "stdin is empty"
    elif not reason and is_placeholder(value.strip()):
        reason = "the value is a placeholder"
    if reason:
        raise AgentboxError(
            f"cannot set {name}: {reason}",
            f"Give the value on stdin: agentbox secrets set {name} < file",
            exit_code=ExitCode.USAGE,
        )
    return value

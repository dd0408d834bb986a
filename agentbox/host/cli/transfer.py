"""What exports and imports share: lines with a header row, counts, options, output to a file.

The format: JSON lines, UTF-8. The first is the header {"kind", "contract_version", "box", "time"};
each other is one record in its wire form, of at most 1 MiB.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import click

from agentbox.core import clock
from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.agent_output import AgentOutput
from agentbox.host.cli.output import Output

if TYPE_CHECKING:
    from agentbox.client import BoxClient

MAX_LINE = 1 << 20  # bytes
Conflict = Literal["fail", "skip", "replace"]
# new, unchanged (the same is there), skipped (another is there), replaced, left out
Counts = Counter[str]
_ORDER = ("new", "unchanged", "skipped", "replaced", "closed", "left out")


def import_options(*conflicts: str) -> Callable[[Any], Any]:
    """--dry-run and --on-conflict."""

    def add(function: Any) -> Any:
        choice = click.option(
            "--on-conflict",
            type=click.Choice(conflicts),
            default="fail",
            show_default=True,
            help="What to do with a record that is there and differs.",
        )
        dry = click.option("--dry-run", is_flag=True, help="Say what would be done; write nothing.")
        return dry(choice(function))

    return add


def lines_of(client: BoxClient, kind: str, version: str, records: Iterable[Any]) -> Iterator[bytes]:
    """The lines of an export. Raises AgentboxError at a record that no import would take."""
    box = client.call("meta")["name"]
    header = {
        "kind": kind,
        "contract_version": version,
        "box": box,
        "time": clock.to_wire(clock.now()),
    }
    yield json.dumps(header, ensure_ascii=False).encode() + b"\n"
    for record in records:
        line = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        if len(line) > MAX_LINE:
            name = record.get("id") or record.get("key")
            raise AgentboxError(
                f"cannot export {name}: its line has {len(line)} bytes, the maximum is {MAX_LINE}"
            )
        yield line


def read_lines(stream: IO[bytes], kind: str, version: str) -> Iterator[tuple[int, Any]]:
    """(number, record) of each line but the header; numbers count from 1. Raises AgentboxError
    (exit 2) at the first line that is too long, not a JSON object, or of another kind or version.
    """
    number = 0
    while line := stream.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            raise line_error(number, f"more than {MAX_LINE} bytes")
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise line_error(number, f"not JSON ({error})") from error
        if not isinstance(row, dict):
            raise line_error(number, "not a JSON object")
        if number == 1:
            _check_header(row, kind, version)
        else:
            yield number, row
    if number == 0:
        raise line_error(1, "no header row: the input is empty")


def line_error(number: int, reason: str) -> AgentboxError:
    """The error for a line that is refused (exit 2)."""
    return AgentboxError(
        f"cannot import line {number}: {reason}",
        "Lines before it are imported. Correct it and run the command again: it goes on there.",
        exit_code=ExitCode.USAGE,
    )


def conflict_error(number: int, name: str) -> AgentboxError:
    """The error for a record that is there and differs (exit 7)."""
    return AgentboxError(
        f"cannot import line {number}: {name} is there and differs",
        "--on-conflict says what to do with such records.",
        exit_code=ExitCode.BUSY,
    )


def print_counts(out: Output, counts: Counts, *, dry_run: bool) -> None:
    """Prints how many records were handled in which way."""
    out.document({"dry_run": dry_run, **{name: counts[name] for name in _ORDER}})
    parts = [f"{counts[name]} {name}" for name in _ORDER if counts[name]]
    out.line(f"{'would be: ' if dry_run else ''}{', '.join(parts) or 'nothing to import'}")


def write_output(file: str, chunks: Iterable[bytes]) -> None:
    """Writes to standard output (-), where a terminal gets text only, or to a file: beside it
    first, so that an interrupted copy leaves what was there. Raises AgentboxError (exit 2) for a
    directory."""
    target = Path(file)
    if file == "-":
        with closing(AgentOutput()) as output:
            for chunk in chunks:
                output.write("stdout", chunk)
    elif target.is_dir():
        raise AgentboxError(f"cannot write {file}: it is a directory", exit_code=ExitCode.USAGE)
    elif target.exists() and not target.is_file():  # a device or a pipe is not replaced
        with target.open("wb") as stream:
            stream.writelines(chunks)
    else:
        _replace(target, chunks)


def _replace(target: Path, chunks: Iterable[bytes]) -> None:
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.writelines(chunks)
            umask = os.umask(0)
            os.umask(umask)
            os.fchmod(stream.fileno(), 0o666 & ~umask)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink()
        raise


def _check_header(row: dict[str, Any], kind: str, version: str) -> None:
    if row.get("kind") != kind:
        raise line_error(1, f"the kind is {row.get('kind')!r}, not {kind!r}: not a header of it")
    given = str(row.get("contract_version"))
    if given.partition(".")[0] != version.partition(".")[0]:
        raise line_error(1, f"contract version {given}, this release reads {version}")

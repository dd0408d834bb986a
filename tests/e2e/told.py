"""The page of errors: each row is the output of a command that a test saw. The page's table is
their golden copy."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from cli_box import CliBox, Ran

from agentbox.core.paths import CHECKOUT

PAGE = CHECKOUT / "docs/howto/when-something-goes-wrong.md"
HEAD = "| What happened | Exit | What it says | What to do |\n|---|---|---|---|\n"
_ROW = re.compile(r"^\| (?P<what>.+?) \| (?P<rest>\d+ \| .*) \|$", re.MULTILINE)


def rows_of(page: str) -> dict[str, str]:
    """What happened -> the rest of its row."""
    return {found["what"]: found["rest"] for found in _ROW.finditer(page)}


@dataclass
class Told:
    """Compares each story with its row, or, with `--write-page`, gathers the rows to write."""

    write: bool
    rows: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rows = rows_of(PAGE.read_text())

    def __call__(self, what: str, cli_box: CliBox, ran: Ran) -> None:
        """What happened, and the command that met it. Fails when the page says otherwise."""
        sentence, hint = ran.error()
        first = ran.err.splitlines()[0]
        if first.startswith(f"{cli_box.manifest}:"):
            sentence = f"{first}; {sentence}"
        row = f"{ran.code} | {_plain(sentence, cli_box)} | {_plain(hint, cli_box)}"
        if self.write:
            self.rows[what] = row
        assert self.rows.get(what) == row, (
            f"{PAGE.name} has another row: run `pytest tests/e2e --full --write-page`"
        )

    def page(self) -> str:
        """The page with the rows gathered."""
        text = PAGE.read_text()
        head, _, rest = text.partition(HEAD)
        after = "\n".join(_after_the_table(rest))
        return (
            head
            + HEAD
            + "".join(f"| {what} | {row} |\n" for what, row in self.rows.items())
            + after
        )


def _after_the_table(rest: str) -> Iterator[str]:
    lines = iter(rest.split("\n"))
    for line in lines:
        if not line.startswith("| "):
            yield line
            break
    yield from lines


def _plain(text: str, cli_box: CliBox) -> str:
    """Without what depends on one machine, one run and one test: names, ports, pids and directories
    as an operator has them."""
    text = (
        text.replace(str(cli_box.manifest), "agentbox.toml")
        .replace(str(cli_box.folder), "DIR")
        .replace(cli_box.name, "agentbox")
    )
    for number, usual in ((cli_box.port, 9090), (cli_box.port + 1, 9091)):
        text = re.sub(rf"\b{number}\b", str(usual), text)
    text = re.sub(r"process \d+ \([^)]*\)", "process 4711 (nginx)", text)
    text = re.sub(r"\(pid \d+\)", "(pid 4711)", text)
    text = re.sub(r"(?<=unix://)[^\s;,]*", "/var/run/docker.sock", text)
    text = re.sub(
        r"resources.cpus = \d+: this host has \d+ ", "resources.cpus = 16: this host has 2 ", text
    )
    text = re.sub(r"(?<=resolving )'[^']*'", "'MIRROR'", text)
    text = re.sub(r"/(?:tmp|var/tmp)/[^\s;,:]*", "/PATH", text)
    return text.replace("|", r"\|")

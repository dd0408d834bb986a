"""Records the session that README.md shows, and draws it: docs/first-five-minutes.cast and .svg.

    .venv/bin/python tools/first_five_minutes.py                    # in a container
    .venv/bin/python tools/first_five_minutes.py --engine process   # without an engine
    .venv/bin/python tools/first_five_minutes.py --draw             # do not record again

Every command runs for real, in a temporary directory, on a box that is removed afterwards.
"""

import argparse
import os
import random
import re
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from draw_recording import svg
from recording import COLUMNS, Recording

CHECKOUT = Path(__file__).resolve().parents[1]
CAST = CHECKOUT / "docs/first-five-minutes.cast"
IMAGE = CAST.with_suffix(".svg")
TITLE = "The first five minutes with agentbox"
BOX_UID = 1000
FILES = {
    "sums.py": "def add(a, b):\n    return a - b\n",
    "test_sums.py": "from sums import add\n\nassert add(2, 3) == 5\nprint('tests pass')\n",
}


class Session:
    """A terminal whose home is `home`. It shows no path of this machine."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.started = time.monotonic()
        self.events: list[tuple[float, str]] = []

    def show(self, text: str) -> None:
        """Adds text at the present time."""
        for path in (self.home, Path.home()):
            text = text.replace(str(path), "~")
        self.events.append((round(time.monotonic() - self.started, 2), text))

    def remark(self, text: str) -> None:
        """A line of explanation."""
        before = "\n" if self.events else ""
        self.show(f"{before}# {text}\n")

    def type(self, command: str, *, code: int = 0) -> str:
        """Runs a command and returns its output. Raises RuntimeError on another exit code."""
        self.show(f"$ {command}\n")
        process = subprocess.Popen(
            ["bash", "-c", command.replace("~/", f"{self.home}/")],
            cwd=self.home / "agentbox",
            env=environment(self.home),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.stdout is not None
        output = ""
        for line in process.stdout:
            output += line
            self.show(line)
        if process.wait() != code:
            raise RuntimeError(f"{command}: exit code {process.returncode}, not {code}\n{output}")
        return output


def environment(home: Path) -> dict[str, str]:
    """That of this process, with the state of the box in the temporary directory."""
    state = home / ".local/state/agentbox"
    added = {"AGENTBOX_STATE_DIR": str(state), "COLUMNS": str(COLUMNS), "PYTHONUNBUFFERED": "1"}
    return {**os.environ, **added}


def free_ports() -> tuple[int, int]:
    """Ports of the API and of metrics, with a free one for the gateway three above the API's. They
    lie below those of outgoing connections (32768 and up), which may be taken at any moment.
    """
    return next(
        (port, port + 1)
        for port in random.sample(range(20_000, 29_000), 100)
        if _is_free(port, port + 1, port + 3)
    )


def _is_free(*ports: int) -> bool:
    try:
        for port in ports:
            with socket.create_server(("127.0.0.1", port)):
                continue
    except OSError:
        return False
    return True


def prepare(home: Path) -> None:
    """A manifest for a box of its own, and a project whose test fails."""
    home.chmod(0o755)
    box, project = home / "agentbox", home / "src/sums"
    box.mkdir()
    project.mkdir(parents=True)
    (box / "agentbox.sh").symlink_to(CHECKOUT / "agentbox.sh")
    api, metrics = free_ports()
    manifest = f'meta = {{ schema_version = 1, name = "five-minutes" }}\napi.port = {api}\n'
    (box / "agentbox.toml").write_text(f"{manifest}observability.metrics_port = {metrics}\n")
    (box / "agentbox.lock").write_bytes((CHECKOUT / "agentbox.lock").read_bytes())
    for name, text in FILES.items():
        (project / name).write_text(text)
    (home / "src/notes.txt").write_text("Nothing that concerns an agent.\n")
    if os.geteuid() == 0:
        for path in (project, *project.iterdir()):
            os.chown(path, BOX_UID, BOX_UID)


def play(session: Session, engine: str) -> None:
    """What a new user types, from the start of a box to the reviewed change."""
    session.remark("Start a box for a project whose test fails.")
    option = "" if engine == "auto" else f" --engine {engine}"
    session.type(f"./agentbox.sh up --yes{option} --project ~/src/sums")
    session.remark("Run a command as an agent. Its exit code is the exit code of `run`.")
    session.type("./agentbox.sh run -- python3 -B test_sums.py", code=1)
    session.remark("An agent edits a copy of the project; here sed plays the agent.")
    fix = "sed -i 's/a - b/a + b/' sums.py && python3 -B test_sums.py"
    output = session.type(f'./agentbox.sh run -- sh -c "{fix}"')
    agent = re.findall(r"review show (\S+)", output)[-1]
    session.remark("An agent reaches no network and no file that its policy does not name.")
    session.type("./agentbox.sh run -- curl -sS https://example.org", code=6)
    session.type("./agentbox.sh run -- cat ~/src/notes.txt", code=1)
    session.remark("Look at the change, then take it.")
    session.type(f"./agentbox.sh review show {agent}")
    session.type(f"./agentbox.sh review commit {agent}")
    session.type("cat ~/src/sums/sums.py")
    session.type("./agentbox.sh down")


def record(engine: str) -> Recording:
    """The whole session. The box and what it stored are removed, also after a failure."""
    with tempfile.TemporaryDirectory(prefix="agentbox-") as folder:
        session = Session(Path(folder))
        prepare(session.home)
        try:
            play(session, engine)
        finally:
            subprocess.run(
                ["./agentbox.sh", "down", "--volumes", "--yes"],
                cwd=session.home / "agentbox",
                env=environment(session.home),
                stdout=subprocess.DEVNULL,
                check=True,
            )
        return Recording(TITLE, tuple(session.events))


def main() -> None:
    """Writes both files."""
    parser = argparse.ArgumentParser(description=TITLE)
    parser.add_argument("--engine", choices=("auto", "docker", "process"), default="auto")
    parser.add_argument("--draw", action="store_true", help="Do not record again.")
    options = parser.parse_args()
    if not options.draw:
        record(options.engine).write(CAST)
    IMAGE.write_text(svg(Recording.read(CAST)))


if __name__ == "__main__":
    main()

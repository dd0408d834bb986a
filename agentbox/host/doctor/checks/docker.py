"""The container engine: is it there, does it answer this user, is it recent enough."""

from collections.abc import Iterator

from agentbox.host.doctor.host import Host
from agentbox.host.doctor.installing import installation
from agentbox.host.doctor.row import Repair, Row
from agentbox.host.doctor.versions import at_least, number
from agentbox.host.engines.choose import missing_packages
from agentbox.host.engines.command import run
from agentbox.host.engines.docker import daemon, reach
from agentbox.host.engines.docker.reach import unreachable

NAME = "engine"
TITLE = "a container engine that answers"
OLDEST = (20, 10)  # the oldest that boxes are started and tested with


def look(host: Host) -> Iterator[Row]:
    if not host.contained:
        said = "this box runs as processes of this host; no container engine is needed"
        yield Row(check=NAME, state="note", said=said, advice="docs/howto/check-a-host.md says what a container adds.")
        return
    found = host.daemon
    if found.state == "answers":
        yield _version()
        return
    error = unreachable("start a box", found)
    yield Row(check=NAME, state="bad", said=error.message, advice=error.hint, repair=_repair(host, found))


def _version() -> Row:
    said = run(["docker", "version", "--format", "{{.Server.Version}}"], doing="ask docker for its version").strip()
    fine = at_least(said, OLDEST)
    advice = "" if fine else f"Bring docker to {number(OLDEST)} or later."
    return Row(
        check=NAME, state="good" if fine else "bad", said=f"docker {said}", advice=advice, facts={"version": said}
    )


def _repair(host: Host, found: reach.Reach) -> Repair | None:
    if not found.ours_to_start:
        return None
    if found.state == "down" and daemon.installed():
        return Repair("Start dockerd?", lambda: _start(host))
    return installation(missing_packages(host.engine, build=False), host.state.folder / "apt.log")


def _start(host: Host) -> str:
    daemon.start(host.paths.state_root)
    return "dockerd answers"

"""Compose: the v2 plugin of docker, or the older program."""

import shutil
from collections.abc import Iterator

from agentbox.host.doctor.host import Host
from agentbox.host.doctor.installing import installation
from agentbox.host.doctor.row import Row
from agentbox.host.doctor.versions import at_least, number
from agentbox.host.engines.command import run, succeeds

NAME = "compose"
TITLE = "compose, which starts the container"
OLDEST = (1, 29)  # the first that knows every key of the rendered file


def look(host: Host) -> Iterator[Row]:
    if not host.contained:
        return
    if succeeds(["docker", "compose", "version"]):
        said = run(["docker", "compose", "version", "--short"], doing="ask compose for its version").strip()
        yield Row(check=NAME, state="good", said=f"the plugin of docker, {said}", facts={"version": said})
    elif shutil.which("docker-compose"):
        said = run(["docker-compose", "version", "--short"], doing="ask compose for its version").strip()
        fine = at_least(said, OLDEST)
        advice = "" if fine else f"Bring docker-compose to {number(OLDEST)} or later, or install the compose plugin."
        yield Row(check=NAME, state="good" if fine else "bad", said=f"docker-compose {said}", advice=advice, facts={"version": said})  # fmt: skip
    else:
        yield Row(
            check=NAME, state="bad", said="neither `docker compose` nor docker-compose is installed",
            advice="Install docker-compose (`up` offers it).",
            repair=installation(["docker-compose"], host.state.folder / "apt.log"),
        )  # fmt: skip

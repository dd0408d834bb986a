"""Compose: the v2 plugin of docker, or docker-compose."""

import shutil
from collections.abc import Iterator

from agentbox.host.doctor.check_context import CheckContext
from agentbox.host.doctor.check_result import CheckResult
from agentbox.host.doctor.install_fix import install_fix
from agentbox.host.doctor.version_numbers import format_version, meets_minimum
from agentbox.host.engines.command import run, succeeds

NAME = "compose"
TITLE = "compose, which starts the container"
MIN_VERSION = (1, 29)  # the first version that supports every key of the rendered file


def run_check(host: CheckContext) -> Iterator[CheckResult]:
    if not host.is_container:
        return
    if succeeds(["docker", "compose", "version"]):
        version = run(
            ["docker", "compose", "version", "--short"], doing="ask compose for its version"
        ).strip()
        yield CheckResult(
            check=NAME,
            state="good",
            message=f"docker plugin {version}",
            facts={"version": version},
        )
    elif shutil.which("docker-compose"):
        version = run(
            ["docker-compose", "version", "--short"], doing="ask compose for its version"
        ).strip()
        ok = meets_minimum(version, MIN_VERSION)
        advice = (
            ""
            if ok
            else (
                f"Upgrade docker-compose to {format_version(MIN_VERSION)} or later, or install the "
                "compose plugin."
            )
        )
        yield CheckResult(
            check=NAME,
            state="good" if ok else "bad",
            message=f"docker-compose {version}",
            advice=advice,
            facts={"version": version},
        )
    else:
        yield CheckResult(
            check=NAME,
            state="bad",
            message="neither `docker compose` nor docker-compose is installed",
            advice="Install docker-compose (`up` offers it).",
            fix=install_fix(["docker-compose"], host.state.directory / "apt.log"),
        )

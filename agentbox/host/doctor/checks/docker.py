"""The container engine: installed, accessible to this user, recent enough."""

from collections.abc import Iterator

from agentbox.host.doctor.check_context import CheckContext
from agentbox.host.doctor.check_result import CheckResult, Fix
from agentbox.host.doctor.install_fix import install_fix
from agentbox.host.doctor.version_numbers import format_version, meets_minimum
from agentbox.host.engines.command import run
from agentbox.host.engines.docker import daemon, daemon_status
from agentbox.host.engines.docker.daemon_status import unreachable_error
from agentbox.host.engines.engine_choice import missing_packages

NAME = "engine"
TITLE = "a container engine that responds"
MIN_VERSION = (20, 10)  # the oldest tested version


def run_check(host: CheckContext) -> Iterator[CheckResult]:
    if not host.is_container:
        message = "the box runs as processes of this host; no container engine needed"
        yield CheckResult(
            check=NAME,
            state="note",
            message=message,
            advice="See docs/howto/check-a-host.md for the benefits of a container.",
        )
        return
    status = host.daemon
    if status.state == "answers":
        yield _check_version()
        return
    error = unreachable_error("start a box", status)
    yield CheckResult(
        check=NAME,
        state="bad",
        message=error.message,
        advice=error.hint,
        fix=_build_fix(host, status),
    )


def _check_version() -> CheckResult:
    version = run(
        ["docker", "version", "--format", "{{.Server.Version}}"], doing="query docker's version"
    ).strip()
    ok = meets_minimum(version, MIN_VERSION)
    advice = "" if ok else f"Upgrade docker to {format_version(MIN_VERSION)} or later."
    return CheckResult(
        check=NAME,
        state="good" if ok else "bad",
        message=f"docker {version}",
        advice=advice,
        facts={"version": version},
    )


def _build_fix(host: CheckContext, status: daemon_status.DaemonStatus) -> Fix | None:
    if not status.is_startable:
        return None
    if status.state == "down" and daemon.is_installed():
        return Fix("Start dockerd?", lambda: _start_daemon(host))
    return install_fix(missing_packages(host.engine, build=False), host.state.directory / "apt.log")


def _start_daemon(host: CheckContext) -> str:
    daemon.start(host.paths.state_root)
    return "dockerd started"

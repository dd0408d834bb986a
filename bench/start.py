"""Container start to `/ready` 200, polled at 5 ms, beside a bare `docker start` of the same image that only sleeps."""

from __future__ import annotations

import argparse
import time

from measure import Claim, container, docker, run_main, write_results

from agentbox.core.errors import AgentboxError
from agentbox.host.engines.readiness import query_ready

_POLL_SECONDS = 0.005
_WARM_UPS = 3
_GIVE_UP_SECONDS = 60.0
_PEER = "agentbox-bench-peer"


def box_start(name: str, url: str) -> float:
    """Seconds from `docker start` to the first 200."""
    docker("stop", name)
    started = time.perf_counter()
    docker("start", name)
    while query_ready(url)[0] != 200:
        if time.perf_counter() - started > _GIVE_UP_SECONDS:
            raise AgentboxError(
                f"cannot measure {name}: it was not ready within {_GIVE_UP_SECONDS:g} s"
            )
        time.sleep(_POLL_SECONDS)
    return time.perf_counter() - started


def bare_start() -> float:
    """Seconds that the engine alone needs to start a container of the same image."""
    docker("stop", "--time", "0", _PEER)
    started = time.perf_counter()
    docker("start", _PEER)
    return time.perf_counter() - started


def main() -> None:
    """Needs a running box (`agentbox up`)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    record = container()
    docker(
        "create",
        "--name",
        _PEER,
        "--network",
        "none",
        "--entrypoint",
        "/usr/bin/sleep",
        record.image_id,
        "1000",
    )
    try:
        for _ in range(_WARM_UPS):
            box_start(record.name, record.api_url)
        samples = [box_start(record.name, record.api_url) for _ in range(runs)]
        bare = [bare_start() for _ in range(runs)]
    finally:
        docker("rm", "--force", _PEER)
    conditions = f"{_WARM_UPS} warm-ups, `docker start` of the stopped box to /ready 200, poll 5 ms"
    write_results("start", [
        Claim("container start to /ready", "s", samples, 2.5, conditions, peer="bare docker start"),
        Claim("bare docker start", "s", bare, None, "same image, entrypoint sleep, no network"),
    ])  # fmt: skip


if __name__ == "__main__":
    run_main(main)

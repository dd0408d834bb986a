"""What a box weighs: the compressed image, and the memory of the idle control plane (PSS), beside a bare uvicorn."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from measure import Claim, container, docker, run_main, write_results

from agentbox.host.cli.context import CliContext
from agentbox.host.image.archive import read_archive

_MIB = 1024.0
# Proportional size of every program that supervisord keeps, itself included, and of one uvicorn that serves nothing.
_PSS = """
import json, pathlib, subprocess, sys, time
def pss(pid):
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(next(line for line in text.splitlines() if line.startswith("Pss:")).split()[1])
def command(pid):
    return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode().replace("\\0", " ")
found = {}
for entry in pathlib.Path("/proc").glob("[0-9]*"):
    line = command(entry.name)
    for name in ("agentbox.box.boot.supervisord", "agentbox.api", "agentbox.gateway", "agentbox.agents", "agentbox.sandbox"):
        if f"-m {name}" in line:
            found[name] = found.get(name, 0) + pss(entry.name)
code = "import asyncio, uvicorn\\nasync def app(s, r, w): pass\\n" \\
       "uvicorn.run(app, uds='/tmp/bench-peer.sock', log_level='critical', lifespan='off')"
peer = subprocess.Popen([sys.executable, "-I", "-c", code])
deadline = time.monotonic() + 10
while not pathlib.Path("/tmp/bench-peer.sock").exists() and time.monotonic() < deadline:
    time.sleep(0.05)
found["peer"] = pss(peer.pid)
peer.kill()
pathlib.Path("/tmp/bench-peer.sock").unlink()
print(json.dumps(found))
"""


def memory(name: str) -> dict[str, float]:
    """PSS in MiB by program, measured inside the box."""
    said = docker("exec", name, "/opt/agentbox/venv/bin/python", "-I", "-c", _PSS)
    return {key: kib / _MIB for key, kib in json.loads(said).items()}


def main() -> None:
    """Needs a running box (`agentbox up`) in which no agent ran for ten seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    runs = min(parser.parse_args().runs, 5)
    state = CliContext().state()
    seen = [memory(container().name) for _ in range(runs)]
    totals = [sum(size for key, size in sample.items() if key != "peer") for sample in seen]
    archive = read_archive(Path(state.directory / "image").resolve())
    layers = {layer.name: layer.size / 1e6 for layer in archive.layers}
    write_results("footprint", [
        Claim("control plane idle, sum of PSS", "MiB", totals, 100, "supervisord, API, gateway, agent-host, launcher; box idle",
              peer="bare uvicorn", extra={"by_program": seen[0]}),
        Claim("bare uvicorn", "MiB", [sample["peer"] for sample in seen], None, "an ASGI application that does nothing"),
        Claim("image, compressed", "MB", [archive.size / 1e6], 115, "core profile, whole archive", extra={"layers": layers}),
    ])  # fmt: skip


if __name__ == "__main__":
    run_main(main)

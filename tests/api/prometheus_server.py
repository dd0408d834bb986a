"""A real Prometheus on loopback."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from support.ports import free_port

from agentbox.plan.render.prometheus import CONFIG_FILE


class Server:
    """A running Prometheus."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/api/v1"

    def get(self, path: str, **query: str) -> Any:
        """The data of an answer; None while it does not answer."""
        try:
            answer = httpx.get(f"{self._url}/{path}", params=query, trust_env=False)
        except httpx.TransportError:
            return None
        return answer.json().get("data") if answer.status_code == 200 else None

    def value(self, expression: str) -> float | None:
        """Of the only series of an instant query; None if there is none."""
        rows = (self.get("query", query=expression) or {"result": []})["result"]
        return float(rows[0]["value"][1]) if len(rows) == 1 else None


@contextmanager
def serving(files: Mapping[str, str], history: str = "") -> Iterator[Server]:
    """With these files of configuration, and a history of samples in the form OpenMetrics."""
    folder, port = Path(tempfile.mkdtemp(prefix="abx-prom-", dir="/var/tmp")), free_port()
    for name, text in files.items():
        (folder / name).write_text(text)
    if history:
        (folder / "history").write_text(history)
        create = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "history", "data"]
        subprocess.run(create, cwd=folder, capture_output=True, check=True)
    argv = [
        "prometheus", f"--config.file={folder / CONFIG_FILE}", f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]  # fmt: skip
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(argv, stdout=log, stderr=log)
    try:
        yield Server(port)
    finally:
        process.terminate()
        process.wait(20)
        shutil.rmtree(folder)

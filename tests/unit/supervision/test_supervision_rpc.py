"""Asking supervisord when it does not answer as it should."""

import socket
import threading
from pathlib import Path

import pytest

from agentbox.box.supervision.rpc import SupervisorClient, SupervisorUnavailable
from agentbox.box.supervision.secrets import write_program_token
from agentbox.core.paths import Paths

HEAD = b"HTTP/1.0 200 OK\r\nContent-Type: text/xml\r\n\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.0 500 Internal Server Error\r\n\r\n",
        HEAD,
        HEAD + b"<?xml version='1.0'?><methodResponse><params><param><value><arr",
        HEAD + b"<?xml version='1.0'?><methodResponse></methodResponse>",
    ],
    ids=["nothing", "an error", "no body", "half a body", "no value"],
)
def test_a_broken_answer_means_unavailable(tmp_path: Path, answer: bytes) -> None:
    """Whatever it sent before it died, the caller gets one typed error."""
    paths = Paths(tmp_path)
    paths.run.mkdir(parents=True)
    write_program_token(paths, "supervisor")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(paths.supervisor_socket))
        server.listen()
        thread = threading.Thread(target=_answer_each, args=(server, answer), daemon=True)
        thread.start()
        with pytest.raises(SupervisorUnavailable):
            SupervisorClient(paths).states()
        server.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def _answer_each(server: socket.socket, answer: bytes) -> None:
    """Until the listener is shut down; the client may ask twice."""
    while True:
        try:
            link, _ = server.accept()
        except OSError:
            return
        with link:
            link.recv(1 << 16)
            link.sendall(answer)

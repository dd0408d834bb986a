"""Has the running server start the kernel that notebooks get, and compute one cell: `kernel_computes.py PORT TOKEN_FILE`."""

import asyncio
import json
import sys
import urllib.request
from pathlib import Path

from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

SERVER = f"127.0.0.1:{sys.argv[1]}/api/kernels"
HEADERS = {"Authorization": f"token {Path(sys.argv[2]).read_text().strip()}"}
CODE = "import sys; print(6 * 7, 'by', sys.executable)"


def call(method, path=""):
    with urllib.request.urlopen(
        urllib.request.Request(f"http://{SERVER}{path}", method=method, headers=HEADERS)
    ) as answer:
        return answer.read()


async def computed(kernel):
    """What the cell prints. The message is that of jupyter_client's protocol, 5.3."""
    channels = await websocket_connect(
        HTTPRequest(f"ws://{SERVER}/{kernel}/channels", headers=HEADERS)
    )
    header = {
        "msg_id": "1",
        "msg_type": "execute_request",
        "username": "",
        "session": "1",
        "date": "",
        "version": "5.3",
    }
    content = {
        "code": CODE,
        "silent": False,
        "store_history": False,
        "user_expressions": {},
        "allow_stdin": False,
    }
    message = {
        "channel": "shell",
        "header": header,
        "parent_header": {},
        "metadata": {},
        "content": content,
        "buffers": [],
    }
    await channels.write_message(json.dumps(message))
    while said := await channels.read_message():
        found = json.loads(said)
        if found["msg_type"] == "error":
            sys.exit("\n".join(found["content"]["traceback"]))
        if found["msg_type"] == "stream":
            return found["content"]["text"]
    sys.exit("the server closed the connection")


kernel = json.loads(call("POST"))["id"]
try:
    sys.stdout.write(asyncio.run(asyncio.wait_for(computed(kernel), 50)))
finally:
    call("DELETE", f"/{kernel}")

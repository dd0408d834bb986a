"""A program of its own, in the sandbox of an http server: one JSON-RPC message a line, each sent by
one POST (MCP, streamable HTTP), and what comes back written as lines.

    python3 -I -c SOURCE

The first line of the input is its configuration: `{url, max_bytes, token, headers}`, with `token`
the name of a secret of this sandbox that is sent as bearer token ("": none), and `headers` by name
`{value, env_var}`, a value or the name of a secret.
Every request goes through the forward proxy of the environment, under the rights of this sandbox.
Standard library only; nothing of agentbox is imported.
"""

import base64
import json
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path
from urllib.parse import unquote, urlsplit

VERSION = "io.modelcontextprotocol/protocolVersion"
NAMED = {"tools/call": "name", "resources/read": "uri", "prompts/get": "name"}
SECONDS = 3700.0


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A server may not send the token elsewhere."""

    def redirect_request(self, *_args, **_kwargs):  # type: ignore[no-untyped-def]
        return None


class Bridge:
    """`proxy` is a URL with credentials; `headers` are those of each request, which nobody is told
    of."""

    def __init__(self, url: str, proxy: str, headers: dict[str, str], max_bytes: int) -> None:
        self.url, self.headers, self.max_bytes = url, headers, max_bytes
        parts = urlsplit(proxy)
        self.proxy = f"{parts.hostname}:{parts.port}"
        self.credentials = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
        self.session = self.version = ""
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirects())
        self._output = threading.Lock()

    def run(self) -> None:
        """Until the input ends. Requests run side by side, everything else in order."""
        for line in sys.stdin.buffer:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            is_request = "id" in message and "method" in message
            if is_request and message["method"] not in ("initialize", "server/discover"):
                threading.Thread(target=self.send, args=(message, line), daemon=True).start()
            else:
                self.send(message, line)

    def send(self, message: dict, line: bytes) -> None:  # type: ignore[type-arg]
        """One message, with an error as response if it cannot be sent."""
        try:
            self._post(message, line)
        except urllib.error.HTTPError as error:
            body = error.read(self.max_bytes)
            if not self._is_answer(body, message):
                self._fail(message, f"the server answered {error.code}")
        except (OSError, HTTPException, ValueError) as error:
            self._fail(message, f"{type(error).__name__}: {error}"[:200])

    def _post(self, message: dict, line: bytes) -> None:  # type: ignore[type-arg]
        request = urllib.request.Request(self.url, line.strip(), self._headers(message))
        request.set_proxy(self.proxy, "http")
        with self._opener.open(request, timeout=SECONDS) as response:
            self.session = response.headers.get("Mcp-Session-Id", self.session)
            if response.status == 202:
                return
            if response.headers.get_content_type() == "text/event-stream":
                self._relay(response, message)
                return
            body = response.read(self.max_bytes + 1)
            if len(body) > self.max_bytes:
                raise ValueError("the response is too large")
            if message.get("method") == "initialize":
                self._learn_version(body)
            if not self._is_answer(body, message):
                self._fail(message, "the response is no message")

    def _headers(self, message: dict) -> dict:  # type: ignore[type-arg]
        headers = {
            **self.headers,
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            "Proxy-Authorization": "Basic " + base64.b64encode(self.credentials.encode()).decode(),
        }
        if self.session:
            headers["Mcp-Session-Id"] = self.session
        params = message.get("params") or {}
        version = (params.get("_meta") or {}).get(VERSION, self.version)
        if version:
            headers["MCP-Protocol-Version"] = version
        if VERSION in (params.get("_meta") or {}):
            headers["Mcp-Method"] = message["method"]
            if name := params.get(NAMED.get(message["method"], "")):
                headers["Mcp-Name"] = name
        return headers

    def _relay(self, response, message: dict) -> None:  # type: ignore[no-untyped-def, type-arg]
        """Server-sent events: each `data` is a message. The stream ends with the response."""
        data, size = [], 0
        while line := response.readline(self.max_bytes + 1):
            size += len(line)
            if size > self.max_bytes:
                raise ValueError("an event is too large")
            text = line.rstrip(b"\r\n")
            if text.startswith(b"data:"):
                data.append(text[5:].lstrip())
            elif not text:
                if data:
                    event = b" ".join(data)
                    if message.get("method") == "initialize":
                        self._learn_version(event)
                    self._write(event)
                    if self._id(event) == message.get("id"):
                        return
                data, size = [], 0
        self._fail(message, "the stream ended without a response")

    def _learn_version(self, body: bytes) -> None:
        result = json.loads(body).get("result") or {}
        self.version = str(result.get("protocolVersion", ""))

    def _is_answer(self, body: bytes, message: dict) -> bool:  # type: ignore[type-arg]
        """Writes a body that is a JSON object."""
        try:
            document = json.loads(body)
        except ValueError:
            return not body.strip() and "id" not in message
        if not isinstance(document, dict) or "jsonrpc" not in document:
            return False
        if document.get("id") is None and "id" in message:
            document["id"] = message["id"]
        self._write(json.dumps(document).encode())
        return True

    def _id(self, event: bytes) -> object:
        try:
            document = json.loads(event)
        except ValueError:
            return None
        is_answer = "result" in document or "error" in document
        return document.get("id") if is_answer else None

    def _fail(self, message: dict, text: str) -> None:  # type: ignore[type-arg]
        if "id" in message and "method" in message:
            error = {"code": -32603, "message": text}
            answer = {"jsonrpc": "2.0", "id": message["id"], "error": error}
            self._write(json.dumps(answer).encode())

    def _write(self, data: bytes) -> None:
        with self._output:
            sys.stdout.buffer.write(data.replace(b"\n", b" ") + b"\n")
            sys.stdout.buffer.flush()


def read_secret(name: str) -> str:
    """A secret of this sandbox. Ends the program if it is not the value of a header: the errors of
    the library would have it in their text."""
    file = Path(tempfile.gettempdir(), "secrets", name)  # agents/runs/injected_env.py
    value = file.read_bytes().strip()
    if not value or any(not 0x20 <= byte <= 0x7E for byte in value):
        sys.exit(f"the secret {name} is not the value of a header: it must be printable ASCII")
    return value.decode("ascii")


def main() -> None:
    config = json.loads(sys.stdin.buffer.readline())
    headers = {
        name: row["value"] or read_secret(row["env_var"]) for name, row in config["headers"].items()
    }
    if config["token"]:
        headers["Authorization"] = f"Bearer {read_secret(config['token'])}"
    proxy = urllib.request.getproxies()["http"]
    Bridge(config["url"], proxy, headers, config["max_bytes"]).run()


if __name__ == "__main__":
    main()

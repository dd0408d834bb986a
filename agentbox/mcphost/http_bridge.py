"""A program of its own, in the sandbox of an http server: one JSON-RPC message a line, each sent by
one POST (MCP, streamable HTTP), and what comes back written as lines. A stream that ends before its
response is opened again where it ended.

    python3 -I -c SOURCE

Each line of the input but the first is `{message, headers}`; of the headers those that mirror
arguments (Mcp-Param-...) are sent with it.
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
import time
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

VERSION = "io.modelcontextprotocol/protocolVersion"
NAMED = {"tools/call": "name", "resources/read": "uri", "prompts/get": "name"}
SECONDS = 3700.0
MAX_RECONNECTS, MAX_RETRY_SECONDS = 20, 30.0


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A server may not send the token elsewhere."""

    def redirect_request(self, *_args, **_kwargs):  # type: ignore[no-untyped-def]
        return None


class Position(NamedTuple):
    """`event` is the id of the last one, "" for none; `retry` in seconds."""

    event: str = ""
    retry: float = 1.0

    def moved(self, line: bytes) -> "Position":
        """After a line that sets one of the two. What cannot be a header is no id."""
        name, _, rest = line.partition(b":")
        value = rest.strip().decode("ascii", "replace")
        if name == b"retry":
            return self._replace(retry=int(value) / 1000) if value.isdecimal() else self
        return self._replace(event=value if value.isascii() and value.isprintable() else "")


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
            given = json.loads(line)
            message, headers = given["message"], given["headers"]
            is_request = "id" in message and "method" in message
            if is_request and message["method"] not in ("initialize", "server/discover"):
                threading.Thread(target=self.send, args=(message, headers), daemon=True).start()
            else:
                self.send(message, headers)

    def send(self, message: dict, headers: dict[str, str]) -> None:  # type: ignore[type-arg]
        """One message, with an error as response if it cannot be sent."""
        try:
            self._post(message, headers)
        except urllib.error.HTTPError as error:
            body = error.read(self.max_bytes)
            if not self._is_answer(body, message):
                self._fail(message, f"the server answered {error.code}")
        except (OSError, HTTPException, ValueError) as error:
            self._fail(message, f"{type(error).__name__}: {error}"[:200])

    def _open(self, body: "bytes | None", headers: dict[str, str]) -> Any:
        request = urllib.request.Request(self.url, body, headers)
        request.set_proxy(self.proxy, "http")
        return self._opener.open(request, timeout=SECONDS)

    def _post(self, message: dict, headers: dict[str, str]) -> None:  # type: ignore[type-arg]
        mirrored = {name: headers[name] for name in headers if name.startswith("Mcp-Param-")}
        own = self._headers(message)
        with self._open(json.dumps(message).encode(), {**mirrored, **own}) as response:
            self.session = response.headers.get("Mcp-Session-Id", self.session)
            if response.status == 202:
                return
            if response.headers.get_content_type() == "text/event-stream":
                self._relay_all(response, message)
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

    def _relay_all(self, response, message: dict) -> None:  # type: ignore[no-untyped-def, type-arg]
        """A server may close the stream and name the event after which it goes on."""
        is_answered, position = self._relay(response, message, Position())
        for _ in range(MAX_RECONNECTS):
            if is_answered or not position.event:
                break
            time.sleep(min(position.retry, MAX_RETRY_SECONDS))
            headers = {**self._headers(message), "Last-Event-ID": position.event}
            headers.pop("Content-Type")
            with self._open(None, headers) as again:
                if again.headers.get_content_type() != "text/event-stream":
                    break
                is_answered, position = self._relay(again, message, position)
        if not is_answered:
            self._fail(message, "the stream ended without a response")

    def _relay(self, response, message: dict, position):  # type: ignore[no-untyped-def, type-arg]
        """Server-sent events: each `data` is a message. The stream ends with the response: whether
        it came, and the position."""
        data, size = [], 0
        while line := self._read_line(response):
            size += len(line)
            if size > self.max_bytes:
                raise ValueError("an event is too large")
            text = line.rstrip(b"\r\n")
            if text.startswith(b"data:"):
                data.append(text[5:].lstrip())
            elif text.startswith((b"id:", b"retry:")):
                position = position.moved(text)
            elif not text:
                event = b" ".join(data)
                if event.strip():
                    if message.get("method") == "initialize":
                        self._learn_version(event)
                    self._write(event)
                    if self._id(event) == message.get("id"):
                        return True, position
                data, size = [], 0
        return False, position

    def _read_line(self, response) -> bytes:  # type: ignore[no-untyped-def]
        """Empty at the end of a stream, also of one that breaks off."""
        try:
            line: bytes = response.readline(self.max_bytes + 1)
        except (OSError, HTTPException):
            return b""
        return line

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

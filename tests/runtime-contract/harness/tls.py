"""A TLS front, as an operator puts one before a mesh host: it ends TLS and passes bytes on to the box on loopback."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

CHUNK = 1 << 16


@contextmanager
def tls_front(folder: Path, address: str, port: int, target: int) -> Iterator[Path]:
    """Listens at `address:port` until the block ends; returns the certificate, which is its own
    trust anchor."""
    certificate, key = folder / "front.pem", folder / "front.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=front", "-addext", f"subjectAltName=IP:{address}", "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    certificate.chmod(0o644)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(
        asyncio.start_server(lambda *below: _serve(*below, target), address, port, ssl=context)
    )
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield certificate
    finally:
        loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(5)


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: int) -> None:
    with suppress(OSError):
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", target)
        await asyncio.gather(_pass(reader, up_writer), _pass(up_reader, writer))


async def _pass(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await source.read(CHUNK):
            sink.write(piece)
            await sink.drain()
        sink.close()

"""`python -I -m agentbox.box.boot.supervisord`: supervisord, woken by signals, with only the
imports for XML-RPC on a Unix socket.

Its libraries import an HTTP client, a web page and its templates: a third of its memory, and time
in each boot.
"""

import sys
from functools import partial
from pkgutil import resolve_name
from types import MappingProxyType, SimpleNamespace
from typing import Any

from agentbox.core.trimmed_imports import block_imports, stub_module


class NoPages:
    """Replaces supervisord's web page: nothing is found there."""

    def __init__(self, _supervisord: Any) -> None:
        pass

    def match(self, _request: Any) -> bool:
        """The interface of a request handler."""
        return False


def _entry_point(_name: None, value: str, _group: None) -> SimpleNamespace:
    return SimpleNamespace(load=partial(resolve_name, value))


block_imports("ssl", "_hashlib")  # OpenSSL; hashlib has built-in algorithms
block_imports("bz2", "gzip", "lzma")  # shutil and xmlrpc.client: archives, compressed requests
stub_module("http.client", HTTPConnection=object, HTTPSConnection=object)  # xmlrpc.client
stub_module(
    "importlib.metadata", EntryPoint=_entry_point
)  # used to find the factory of its interface
stub_module("importlib.resources", files=None)  # its command that prints a sample
stub_module("html.entities", html5=MappingProxyType({}))  # of its web page, as the next two
stub_module("html.parser", HTMLParser=object)
stub_module("supervisor.web", supervisor_ui_handler=NoPages)

if __name__ == "__main__":
    from supervisor import supervisord

    from agentbox.box.boot.supervisord_wakeup import wakeup_options

    supervisord.ServerOptions = wakeup_options
    sys.exit(supervisord.main())

"""`python -I -m agentbox.api`: the program management-api."""

import sys

from agentbox.core.trimmed_imports import block_imports, stub_module

block_imports("python_multipart", "multipart")  # starlette: forms, which no route has
block_imports("rich")  # structlog: tracebacks for a terminal
stub_module(
    "uvicorn.main", Server=None, main=None, run=None
)  # its command: click, reloaders, a process manager
# uvicorn: logging configured from files
stub_module("logging.config", dictConfig=None, fileConfig=None)
stub_module("configparser", RawConfigParser=None)
stub_module("html", escape=None)  # starlette: tracebacks as pages
stub_module(  # starlette: forms
    "starlette.formparsers", FormParser=None, MultiPartException=Exception, MultiPartParser=None
)
# prometheus_client: its own metrics servers
stub_module("http.server", BaseHTTPRequestHandler=object)
stub_module("wsgiref.simple_server", WSGIRequestHandler=object, WSGIServer=object, make_server=None)

if __name__ == "__main__":
    from agentbox.api.main import main

    sys.exit(main())

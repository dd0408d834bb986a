"""`python -I -m agentbox.gateway`: the gateway process."""

import sys

from agentbox.core.trimmed_imports import block_imports, stub_module

block_imports("python_multipart", "multipart")  # starlette: forms, which no route has
block_imports("rich")  # structlog: terminal tracebacks
stub_module(
    "uvicorn.main", Server=None, main=None, run=None
)  # its CLI: click, reloaders, process manager
# uvicorn: logging configured from files
stub_module("logging.config", dictConfig=None, fileConfig=None)
stub_module("configparser", RawConfigParser=None)
stub_module("html", escape=None)  # starlette: tracebacks as pages
stub_module(  # starlette: forms
    "starlette.formparsers", FormParser=None, MultiPartException=Exception, MultiPartParser=None
)

if __name__ == "__main__":
    from agentbox.gateway.main import main

    sys.exit(main())

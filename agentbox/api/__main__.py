"""`python -I -m agentbox.api`: the program management-api."""

import sys

from agentbox.core.trimmed_imports import leave_out, stand_in

leave_out("rich")  # structlog: tracebacks for a terminal
stand_in("uvicorn.main", Server=None, main=None, run=None)  # its command: click, reloaders, a process manager
# prometheus_client: servers of its own for metrics
stand_in("http.server", BaseHTTPRequestHandler=object)
stand_in("wsgiref.simple_server", WSGIRequestHandler=object, WSGIServer=object, make_server=None)

if __name__ == "__main__":
    from agentbox.api.main import main

    sys.exit(main())

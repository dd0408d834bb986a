"""A listening socket that serves an ASGI application, with bounds on what a connection may take."""

from agentbox.serving.connection import MAX_HEAD, BoundedHttp, Bounds
from agentbox.serving.listener import Asgi, Listener, Make, bind

__all__ = ["MAX_HEAD", "Asgi", "BoundedHttp", "Bounds", "Listener", "Make", "bind"]

"""The stable object that callers hold for a slot: the methods of its Protocol, each through the
pipeline."""

from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import Any

from agentbox.adapters.runtime.adapter import SlotName
from agentbox.adapters.runtime.pipeline import Pipeline
from agentbox.contracts.routes.operation import Operation
from agentbox.contracts.slot_operations import METHODS


class SlotProxy:
    """Created by `proxy_for`; its only attributes are the slot's methods."""

    __slots__ = ("__dict__",)


def proxy_for(slot: SlotName, pipeline: Pipeline) -> Any:
    """Return the proxy of a slot. A test checks that it conforms to the slot's Protocol."""
    proxy = SlotProxy()
    for spec in METHODS[slot]:
        setattr(proxy, spec.name, _method(spec, pipeline))
    return proxy


def _method(spec: Operation, pipeline: Pipeline) -> Callable[..., Any]:
    if spec.is_stream:
        return partial(_stream, pipeline, spec)
    return partial(pipeline.call, spec)


def _stream(pipeline: Pipeline, spec: Operation, *args: Any, **kwargs: Any) -> AsyncGenerator[Any]:
    return pipeline.stream(spec, args, kwargs)

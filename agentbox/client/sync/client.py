"""The synchronous client of a box. Slot clients are imported on first use, since a command uses
only one."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from ssl import SSLContext
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from agentbox.client.errors import ApiError, unreachable
from agentbox.client.http_transport import HttpTransport, Response, TransportError
from agentbox.client.records import LogItem, Readiness, Submitted, Task
from agentbox.client.streams import ENDED_EARLY, IDLE_TIMEOUT, RETRY_SECONDS, StreamResumption
from agentbox.client.task_call import parse_log_event, task_body
from agentbox.client.transport import (
    Call,
    base_headers,
    build_call,
    check_response,
    parse_data,
    parse_error,
)
from agentbox.core.http.sse_parser import SseEvent, SseParser

if TYPE_CHECKING:
    from agentbox.client.attach import Attached
    from agentbox.client.sync.admin import MeshClient, TokensClient
    from agentbox.client.sync.agents import AgentsClient
    from agentbox.client.sync.beads import BeadsClient, EventsClient
    from agentbox.client.sync.reviews import ApprovalsClient, ReviewsClient
    from agentbox.client.sync.slots import MemoryClient, PodsClient
    from agentbox.client.sync.states import StatesClient


class BoxClient:
    """Calls the API of a box. Raises ApiError for an error response, BoxUnreachable without a
    response. Thread-safe."""

    def __init__(
        self, url: str, *, token: str = "", timeout: float = 10.0, ssl: SSLContext | None = None
    ) -> None:
        """`ssl`: trust settings of an https URL; None uses the system's certificate authorities."""
        self.url = url.rstrip("/")
        self._token, self._timeout, self._ssl = token, timeout, ssl
        self._http = HttpTransport(self.url, headers=base_headers(token), timeout=timeout, ssl=ssl)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def call(
        self,
        name: str,
        parameters: Mapping[str, str] | None = None,
        *,
        query: Mapping[str, object] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        accepted: tuple[int, ...] = (),
        wait_s: float | None = None,
    ) -> Any:
        """Calls an operation by name and returns its JSON, None for 204. A status in `accepted` is
        not an error."""
        call = build_call(name, parameters, query=query, body=body, headers=headers)
        return parse_data(self._request(call, wait_s), accepted=accepted)

    def send(
        self, call: Call, *, accepted: tuple[int, ...] = (), wait_s: float | None = None
    ) -> Response:
        """Sends a request from `build_call`. A status in `accepted` is not an error."""
        return check_response(self._request(call, wait_s), accepted)

    def _request(self, call: Call, wait_s: float | None) -> Response:
        try:
            return self._http.request(
                call.method,
                call.url,
                headers=call.headers,
                body=call.body,
                content=call.content,
                timeout=wait_s,
            )
        except TransportError as error:
            raise unreachable(self.url, error) from error

    def livez(self) -> Mapping[str, Any]:
        """{live, uptime}."""
        data: Mapping[str, Any] = self.call("livez")
        return data

    @contextmanager
    def streaming(self, call: Call) -> Iterator[Response]:
        """The response with its body unread."""
        try:
            with self._http.stream(call.method, call.url, headers=call.headers) as response:
                if not response.is_success:
                    response.read()
                yield check_response(response, ())
        except TransportError as error:
            raise unreachable(self.url, error) from error

    def attach(self, agent_id: str, generation: int) -> "Attached":
        """Attaches to an agent's pipes; `agents.attach` also detaches."""
        from agentbox.client import attach  # its library is imported on use

        url, headers = attach.attach_url(self.url, agent_id, generation), base_headers(self._token)
        return attach.attach_sync(
            self.url, url, **attach.connect_options(self.url, headers, self._ssl, self._timeout)
        )

    def ready(self) -> Readiness:
        """The cached readiness; not ready is not an error."""
        return Readiness.from_wire(self.call("ready", accepted=(503,)))

    def health(self) -> Mapping[str, Any]:
        """The state of each component."""
        data: Mapping[str, Any] = self.call("health")
        return data

    def meta(self) -> Mapping[str, Any]:
        """Digests, slots, boot."""
        data: Mapping[str, Any] = self.call("meta")
        return data

    def boot(self) -> Mapping[str, Any]:
        """The record of this boot."""
        data: Mapping[str, Any] = self.call("boot")
        return data

    def drain(self) -> Mapping[str, Any]:
        """Starts the drain."""
        data: Mapping[str, Any] = self.call("drain")
        return data

    def config_apply(self) -> Mapping[str, Any]:
        """Applies the live keys of the mounted manifest."""
        data: Mapping[str, Any] = self.call("config_apply", wait_s=60)
        return data

    def openapi(self) -> Mapping[str, Any]:
        """The API as OpenAPI 3.1."""
        data: Mapping[str, Any] = self.call("openapi")
        return data

    def submit_task(
        self, spec: Mapping[str, Any], *, timeout_s: float = 600, **options: Any
    ) -> Submitted:
        """Queues a run. `spec` is an AgentSpec in JSON; `options` are the other members of a
        TaskBody."""
        return Submitted.from_wire(
            self.call("submit_task", body=task_body(spec, timeout_s, options))
        )

    def task(self, task_id: str) -> Task:
        """One task."""
        return Task.from_wire(self.call("get_task", {"id": task_id}))

    def tasks(
        self, *, limit: int = 100, cursor: str | None = None
    ) -> tuple[list[Task], str | None]:
        """A page of tasks and the next cursor."""
        page = self.call("list_tasks", query={"limit": limit, "cursor": cursor})
        return [Task.from_wire(item) for item in page["items"]], page["next_cursor"]

    def cancel_task(self, task_id: str) -> Task:
        """Cancels a task; returns when its agent has ended."""
        return Task.from_wire(self.call("cancel_task", {"id": task_id}, wait_s=90))

    def task_logs(
        self, task_id: str, *, since: int = 0, follow: bool = True, patience: float = 60.0
    ) -> Iterator[LogItem | Task]:
        """Output of a task after the cursor `since`, finally the Task itself. Survives a restart of
        the API."""
        query = {"follow": str(follow).lower()}
        start = str(since) if since else ""
        events = self.stream(
            "task_logs", {"id": task_id}, query=query, last="task", since=start, patience=patience
        )
        return map(parse_log_event, events)

    def stream(
        self,
        name: str,
        parameters: Mapping[str, str] | None = None,
        *,
        query: Mapping[str, object] | None = None,
        last: str = "",
        since: str = "",
        patience: float = 60.0,
    ) -> Iterator[SseEvent]:
        """Events of a streaming operation, each once and in order, across reconnects
        (Last-Event-ID).

        With `last` the stream ends at the first event of that type; an end without it counts as
        broken. Starts after the id `since`.
        """
        resume = StreamResumption(patience, since)
        while True:
            try:
                for event in self._events(
                    build_call(name, parameters, query=query, headers=resume.headers())
                ):
                    resume.on_event(event)
                    yield event
                    if event.event == last:
                        return
                if not last:
                    return
                raise TransportError(ENDED_EARLY)
            except ApiError as error:
                if not resume.may_retry(error):
                    raise
            except TransportError as error:
                if not resume.may_retry(error):
                    raise unreachable(self.url, error) from error
            time.sleep(RETRY_SECONDS)

    def _events(self, call: Call) -> Iterator[SseEvent]:
        opened = self._http.stream(
            call.method,
            call.url,
            headers=call.headers,
            timeout=IDLE_TIMEOUT,
            connect_s=self._timeout,
        )
        with opened as response:
            if not response.is_success:
                response.read()
                raise parse_error(response)
            parser = SseParser()
            for chunk in response.iter_bytes():
                yield from parser.feed(chunk)

    @cached_property
    def pods(self) -> "PodsClient":
        """Named objects."""
        from agentbox.client.sync.slots import PodsClient

        return PodsClient(self)

    @cached_property
    def memory(self) -> "MemoryClient":
        """Searchable entries."""
        from agentbox.client.sync.slots import MemoryClient

        return MemoryClient(self)

    @cached_property
    def agents(self) -> "AgentsClient":
        """Agents."""

        from agentbox.client.sync.agents import AgentsClient

        return AgentsClient(self)

    @cached_property
    def beads(self) -> "BeadsClient":
        """Work items."""
        from agentbox.client.sync.beads import BeadsClient

        return BeadsClient(self)

    @cached_property
    def events(self) -> "EventsClient":
        """The event journal."""
        from agentbox.client.sync.beads import EventsClient

        return EventsClient(self)

    @cached_property
    def tokens(self) -> "TokensClient":
        """Named tokens."""
        from agentbox.client.sync.admin import TokensClient

        return TokensClient(self)

    @cached_property
    def mesh(self) -> "MeshClient":
        """Joined boxes, and this box's own membership."""
        from agentbox.client.sync.admin import MeshClient

        return MeshClient(self)

    @cached_property
    def reviews(self) -> "ReviewsClient":
        """Reviews of agents' changes."""
        from agentbox.client.sync.reviews import ReviewsClient

        return ReviewsClient(self)

    @cached_property
    def states(self) -> "StatesClient":
        """States: the memory and pods of runs."""
        from agentbox.client.sync.states import StatesClient

        return StatesClient(self)

    @cached_property
    def approvals(self) -> "ApprovalsClient":
        """Actions that require an approval."""
        from agentbox.client.sync.reviews import ApprovalsClient

        return ApprovalsClient(self)

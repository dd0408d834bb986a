"""A box of real parts: API, agent-host, gateway and a model server, with the agents and providers
of a manifest text.
"""

import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from agentbox.plan.network import gateway_port
from support import plans
from support.agent_host import plan_of
from support.api_box import ApiBox, api_plan
from support.gateway_box import GatewayBox


class StoryBox:
    """A context manager. `manifest` may contain `{url}` for the model server; `secrets` become
    files of the box; `programs` have connections to agent-host.
    """

    def __init__(
        self,
        prefix: Path,
        url: str,
        manifest: str,
        secrets: Mapping[str, str],
        *,
        programs: Iterable[str] = (),
        **limits: Any,
    ) -> None:
        parsed = plans.plan_of(manifest.replace("{url}", url))
        base = api_plan()
        self.plan = replace(
            base,
            programs=plan_of({}, {}, programs=programs).programs,
            rulesets={
                name: replace(ruleset, reads=(*ruleset.reads, sys.prefix))
                for name, ruleset in parsed.rulesets.items()
            },
            acp=parsed.acp,
            sandboxes=parsed.sandboxes,
            agents=parsed.agents,
            policies=parsed.policies,
            providers=parsed.providers,
            reach=parsed.reach,
            cost=parsed.cost,
            limits=replace(base.limits, **limits),
        )
        self.api = ApiBox(prefix, plan=self.plan)
        self.paths = self.api.paths
        names = (
            "programs",
            "rulesets",
            "acp",
            "sandboxes",
            "api",
            "observability",
            "agents",
            "policies",
            "providers",
            "reach",
            "limits",
            "cost",
        )
        self.gateway = GatewayBox(prefix, **{name: getattr(self.plan, name) for name in names})
        self.paths.mounted_secrets.mkdir(parents=True, exist_ok=True)
        for name, value in secrets.items():
            (self.paths.mounted_secrets / name).write_text(value)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self.api)
            stack.enter_context(self.gateway)
            self.client = stack.enter_context(self.api.client())
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self._stack.close()

    @property
    def port(self) -> int:
        """The gateway's port."""
        return gateway_port(self.plan, in_container=False)

    def logs(self) -> str:
        """Return the logs of the programs."""
        host = self.api.host
        files = [self.api.log, self.gateway.log, *([host.log] if host else [])]
        return "\n".join(f"== {file.name}\n{file.read_text()}" for file in files if file.exists())

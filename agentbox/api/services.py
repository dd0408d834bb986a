"""The dependencies of the endpoints; built once, in `app.py`."""

from dataclasses import dataclass, field

from agentbox.api.background.approver_presence import ApproverPresence
from agentbox.api.background.background_work import BackgroundWork
from agentbox.api.background.drain import Drain
from agentbox.api.background.drift import DriftWatcher
from agentbox.api.parts import ApiParts


@dataclass(kw_only=True)
class Services(ApiParts):
    """The parts of a running API, and what works in its background."""

    drift: DriftWatcher = field(init=False)
    background: BackgroundWork = field(init=False)
    drain: Drain = field(init=False)
    approvers: ApproverPresence = field(init=False)

    def __post_init__(self) -> None:
        self.drift = DriftWatcher(self)
        self.background = BackgroundWork(self, self.drift)
        self.drain = Drain(self, self.background)
        self.approvers = ApproverPresence(self.slots)

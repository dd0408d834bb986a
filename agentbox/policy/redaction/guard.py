"""The policy: what is redacted for which slot, and what happens when that cannot be done."""

import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from agentbox.core.errors import AgentboxError
from agentbox.policy.redaction.detectors import RULES, card_number, names_secret
from agentbox.policy.redaction.escapes import spaced, unescaped
from agentbox.policy.redaction.findings import Detector, Span, mask, masked
from agentbox.policy.redaction.walk import rewrite

Policy = Literal["strict", "soft", "off"]
WHOLE = 1 << 20  # characters; a longer text is searched in windows
WINDOW = 64 << 10
OVERLAP = 1 << 10
LONGEST = 16 << 10  # characters of the longest token, a JWT
_SPACE = re.compile(r"\s")
BASE_SECONDS = 0.05
SECONDS_PER_MIB = 0.05
SHORTEST_PIN = 1000  # a smaller number under the name of a secret is a count or a switch


class Rejected(Exception):
    """The policy is strict, and the write cannot be redacted. The text names no finding."""


@dataclass(slots=True)
class Cleaned:
    """The arguments to go on with, how often each class was masked, and how many texts could not be searched."""

    document: dict[str, Any]
    counts: Counter[str] = field(default_factory=Counter)
    failed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """Detectors and the policy of each slot. A slot without a policy is not touched."""

    detectors: Mapping[str, Detector]
    policies: Mapping[str, Policy]
    seconds: Callable[[], float] = time.thread_time  # of this thread: a busy machine is no failure of detection

    def clean(
        self, slot: str, method: str, document: dict[str, Any], fields: tuple[str, ...], identifiers: tuple[str, ...]
    ) -> Cleaned:
        """The arguments of a call with every finding masked.

        Raises Rejected under `strict` when detection fails or takes over 50 ms and 50 ms a MiB, or when an identifier
        holds a finding (it cannot be masked without naming something else).
        """
        cleaned = Cleaned(document)
        policy = self.policies.get(slot, "off")
        if policy == "off" or not self.detectors:
            return cleaned
        search = _Search(self, policy, cleaned)
        for pointer in identifiers:
            rewrite(document, pointer, search.identifier)
        for pointer in fields:
            cleaned.document = rewrite(cleaned.document, pointer, search.text, search.number, search.named)
        search.settle()
        return cleaned

    def spans(self, text: str) -> list[Span]:
        """Every finding, long texts by windows."""
        if len(text) <= WHOLE:
            return self._search(text)
        found: set[Span] = set()
        start = 0
        while start < len(text):
            end = unbroken(text, min(start + WINDOW, len(text)))
            for span in self._search(text, start, end):
                # What reaches the end of its window, such as a private key, is searched again from a little before it.
                again = max(0, span.start - OVERLAP)
                found.update([span] if span.end < end else self._search(text, again, again + WINDOW))
            start = end - OVERLAP if end < len(text) else end
        return sorted(found)

    def _search(self, text: str, start: int = 0, end: int | None = None) -> list[Span]:
        window = text[start:end]
        plain = spaced(window)
        found = [span for detect in self.detectors.values() for span in detect(plain)]
        if plain is not window and "secret" in self.detectors:  # a value may hold a backslash of its own
            found += self.detectors["secret"](window)
        for reading in unescaped(window):
            found += [reading.original(span) for detect in self.detectors.values() for span in detect(reading.text)]
        return [Span(span.start + start, span.end + start, span.name) for span in found]


def unbroken(text: str, end: int) -> int:
    """That place, or a little after it, where no word is cut: a token may be longer than the overlap of two windows."""
    space = _SPACE.search(text, end, end + LONGEST)
    return space.start() if space is not None else min(end + LONGEST, len(text))


class _Search:
    """One call's search, with its time and its policy."""

    def __init__(self, guard: Guard, policy: Policy, into: Cleaned) -> None:
        self._guard, self._policy, self._into = guard, policy, into
        self._size = 0
        self._started = guard.seconds()

    def text(self, text: str, key: str) -> str:
        self._size += len(text)
        if text and self.named(key) and text != mask("secret"):
            return self._masked("secret")
        spans = self._spans(text)
        if not spans:
            return text
        new, names = masked(text, spans)
        self._into.counts.update(names)
        return new

    def number(self, number: float, key: str) -> Any:
        """A number that is secret by its name, or the number of a payment card; else the number itself."""
        if self.named(key) and (abs(number) >= SHORTEST_PIN or not float(number).is_integer()):
            return self._masked("secret")
        if "account_number" in self._guard.detectors and card_number(number):
            return self._masked("account_number")
        return number

    def named(self, key: str) -> bool:
        """Whether what is under that name is a secret."""
        return bool(key) and "secret" in self._guard.detectors and names_secret(key)

    def _masked(self, name: str) -> str:
        self._into.counts[name] += 1
        return mask(name)

    def identifier(self, text: str, key: str) -> str:
        self._size += len(text)
        names = [span.name for span in self._spans(text)]
        if names and self._policy == "strict":
            raise Rejected(f"the {key.replace('_', ' ')} holds what must not be stored")
        self._into.counts.update(names)
        return text

    def settle(self) -> None:
        """Raises Rejected, or counts a failure, when the search took too long."""
        if self._guard.seconds() - self._started > BASE_SECONDS + SECONDS_PER_MIB * self._size / (1 << 20):
            self._fail("the search for private data took too long")

    def _spans(self, text: str) -> list[Span]:
        try:
            return self._guard.spans(text)
        except (RuntimeError, ValueError, RecursionError, MemoryError):
            self._fail("the search for private data failed")
            return []

    def _fail(self, why: str) -> None:
        if self._policy == "strict":
            raise Rejected(why)
        self._into.failed += 1


def guard_of(privacy: Mapping[str, Any]) -> Guard:
    """The guard of an effective `[privacy]` table. Raises AgentboxError for a class or a mode without detector."""
    mode = str(privacy.get("mode", "rules"))
    if not privacy.get("enabled", True) or mode == "off":
        return Guard(detectors={}, policies={})
    if mode != "rules":
        raise AgentboxError(
            f'cannot redact with privacy.mode = "{mode}": no such program in this release', 'use "rules" or "off"'
        )
    names = tuple(privacy.get("entities", ("secret",)))
    wanted = tuple(RULES) if "*" in names else names
    for name in wanted:
        if name not in RULES:
            raise AgentboxError(
                f'cannot redact "{name}": no detector of mode "rules" finds it',
                f"it finds {', '.join(RULES)}; name those in privacy.entities",
            )
    return Guard(detectors={name: RULES[name] for name in wanted}, policies=dict(privacy.get("policy", {})))

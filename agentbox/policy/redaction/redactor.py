"""The redaction policy: what is redacted for which slot, and what happens on failure."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from agentbox.core.errors import AgentboxError
from agentbox.core.frozen import frozen_slots
from agentbox.policy.redaction.cpu_clock import thread_seconds
from agentbox.policy.redaction.detectors import RULES, is_card_number, is_secret_name
from agentbox.policy.redaction.escapes import blank_escapes, decode_escapes
from agentbox.policy.redaction.findings import Detector, TextSpan, mask, mask_spans
from agentbox.policy.redaction.walk import rewrite

Policy = Literal["strict", "soft", "off"]
WINDOW_THRESHOLD = 1 << 20  # characters; a longer text is searched in windows
WINDOW = 64 << 10
OVERLAP = 1 << 10
MAX_TOKEN = 16 << 10  # characters of the longest token, a JWT
_SPACE = re.compile(r"\s")
BASE_SECONDS = 0.05
SECONDS_PER_MIB = 0.05
MIN_PIN = 1000  # smaller numbers under a secret's name are counts or flags


class RedactionFailed(Exception):
    """The write cannot be redacted and the policy is strict. The message contains no finding."""


@dataclass(slots=True)
class Redacted:
    """The redacted arguments, how often each class was masked, and how many texts could not be
    searched.
    """

    document: dict[str, Any]
    counts: Counter[str] = field(default_factory=Counter)
    failed: int = 0


@frozen_slots
class Redactor:
    """Detectors and the policy of each slot. A slot without a policy is not redacted."""

    detectors: Mapping[str, Detector]
    policies: Mapping[str, Policy]
    clock: Callable[[], float] = thread_seconds

    def redact(
        self,
        slot: str,
        method: str,
        document: dict[str, Any],
        fields: tuple[str, ...],
        identifiers: tuple[str, ...],
    ) -> Redacted:
        """Masks all findings in the arguments of a call. Raises RedactionFailed under `strict` if
        the search fails or takes over 50 ms and 50 ms a MiB, or if an identifier contains a finding
        (masking it would change its meaning).
        """
        result = Redacted(document)
        policy = self.policies.get(slot, "off")
        if policy == "off" or not self.detectors:
            return result
        search = _Search(self, policy, result)
        for pointer in identifiers:
            rewrite(document, pointer, search.identifier)
        for pointer in fields:
            result.document = rewrite(
                result.document, pointer, search.text, search.number, search.is_secret
            )
        search.check_time()
        return result

    def spans(self, text: str) -> list[TextSpan]:
        """All findings; long texts are searched in windows."""
        if len(text) <= WINDOW_THRESHOLD:
            return self._search(text)
        spans: set[TextSpan] = set()
        start = 0
        while start < len(text):
            end = next_word_end(text, min(start + WINDOW, len(text)))
            for span in self._search(text, start, end):
                # A finding at the end of its window, such as a private key, is searched again from
                # before it.
                restart = max(0, span.start - OVERLAP)
                spans.update(
                    [span] if span.end < end else self._search(text, restart, restart + WINDOW)
                )
            start = end - OVERLAP if end < len(text) else end
        return sorted(spans)

    def _search(self, text: str, start: int = 0, end: int | None = None) -> list[TextSpan]:
        window = text[start:end]
        plain = blank_escapes(window)
        spans = [span for detect in self.detectors.values() for span in detect(plain)]
        if plain is not window and "secret" in self.detectors:  # a value may contain a backslash
            spans += self.detectors["secret"](window)
        for decoded in decode_escapes(window):
            spans += [
                decoded.original(span)
                for detect in self.detectors.values()
                for span in detect(decoded.text)
            ]
        return [TextSpan(span.start + start, span.end + start, span.name) for span in spans]


def next_word_end(text: str, end: int) -> int:
    """The end of the word at that position, up to a maximum: a token may be longer than the overlap
    of two windows.
    """
    space = _SPACE.search(text, end, end + MAX_TOKEN)
    return space.start() if space is not None else min(end + MAX_TOKEN, len(text))


class _Search:
    """The search of one call, with its time limit and policy."""

    def __init__(self, redactor: Redactor, policy: Policy, result: Redacted) -> None:
        self._redactor, self._policy, self._result = redactor, policy, result
        self._size = 0
        self._started = redactor.clock()

    def text(self, text: str, key: str) -> str:
        self._size += len(text)
        if text and self.is_secret(key) and text != mask("secret"):
            return self._mask("secret")
        spans = self._spans(text)
        if not spans:
            return text
        new, names = mask_spans(text, spans)
        self._result.counts.update(names)
        return new

    def number(self, number: float, key: str) -> Any:
        """Masks a number that is secret by its name, or that is a payment card."""
        if self.is_secret(key) and (abs(number) >= MIN_PIN or not float(number).is_integer()):
            return self._mask("secret")
        if "account_number" in self._redactor.detectors and is_card_number(number):
            return self._mask("account_number")
        return number

    def is_secret(self, key: str) -> bool:
        """Whether the name indicates a secret."""
        return bool(key) and "secret" in self._redactor.detectors and is_secret_name(key)

    def _mask(self, name: str) -> str:
        self._result.counts[name] += 1
        return mask(name)

    def identifier(self, text: str, key: str) -> str:
        self._size += len(text)
        names = [span.name for span in self._spans(text)]
        if names and self._policy == "strict":
            raise RedactionFailed(
                f"the {key.replace('_', ' ')} contains data that must not be stored"
            )
        self._result.counts.update(names)
        return text

    def check_time(self) -> None:
        """Raises RedactionFailed, or counts a failure, if the search took too long."""
        if self._redactor.clock() - self._started > BASE_SECONDS + SECONDS_PER_MIB * self._size / (
            1 << 20
        ):
            self._fail("the search for sensitive data took too long")

    def _spans(self, text: str) -> list[TextSpan]:
        try:
            return self._redactor.spans(text)
        except (RuntimeError, ValueError, RecursionError, MemoryError):
            self._fail("the search for sensitive data failed")
            return []

    def _fail(self, reason: str) -> None:
        if self._policy == "strict":
            raise RedactionFailed(reason)
        self._result.failed += 1


class PrivacySettings(Protocol):
    """An effective `[privacy]` table."""

    @property
    def enabled(self) -> bool:
        """False: nothing is redacted."""
        ...

    @property
    def mode(self) -> str:
        """How findings are detected: `rules` or `off`."""
        ...

    @property
    def entities(self) -> tuple[str, ...]:
        """Classes of findings; `*` is all."""
        ...

    @property
    def policy(self) -> Mapping[str, Policy]:
        """Strictness by slot and direction."""
        ...


def build_redactor(privacy: PrivacySettings) -> Redactor:
    """Raises AgentboxError for an unsupported class or mode."""
    if not privacy.enabled or privacy.mode == "off":
        return Redactor(detectors={}, policies={})
    if privacy.mode != "rules":
        raise AgentboxError(
            f'cannot redact with privacy.mode = "{privacy.mode}": not supported in this release',
            'use "rules" or "off"',
        )
    selected = tuple(RULES) if "*" in privacy.entities else privacy.entities
    for name in selected:
        if name not in RULES:
            raise AgentboxError(
                f'cannot redact "{name}": no detector of mode "rules" finds it',
                f"use {', '.join(RULES)} in privacy.entities",
            )
    detectors = {name: RULES[name] for name in selected}
    return Redactor(detectors=detectors, policies=privacy.policy)

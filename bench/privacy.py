"""Precision and recall of the privacy filter's detectors, and their speed, beside detect-secrets on the same texts.

`python bench/privacy.py [--runs N] [--out FILE]`. The texts are those of `privacy_texts.py`, which says what they are worth.
A value counts as found when a finding of its class covers all of it; a finding that touches no value of its class is a
false one. detect-secrets looks for secrets alone, in files; it is measured when it can be imported (it is no dependency), with its
default plugins and filters.
"""

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from measure import Claim, write_results
from privacy_texts import texts

from agentbox.policy.redaction.detectors import RULES

CLASSES = ("secret", "email", "phone", "account_number", "url")
Found = Iterable[tuple[int, int]]


def ours(kind: str) -> Callable[[str], Found]:
    """The detector of one class."""
    return lambda text: [(span.start, span.end) for span in RULES[kind](text)]


def peer() -> Callable[[str], Found] | None:
    """detect-secrets as its command scans a file, with its default plugins and filters; None where it is not installed."""
    try:
        from detect_secrets import SecretsCollection
        from detect_secrets.settings import default_settings
    except ImportError:
        return None

    def find(text: str) -> Found:
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file, default_settings():
            file.write(text)
            file.flush()
            collection = SecretsCollection()
            collection.scan_file(file.name)
            for _, secret in collection:
                lines = text.splitlines(keepends=True)
                at = sum(map(len, lines[: secret.line_number - 1]))
                start = text.find(secret.secret_value or "\0", at)
                # A private key is told by its first line alone: the whole of it counts as found.
                yield (
                    (at, len(text))
                    if "PRIVATE KEY" in lines[secret.line_number - 1]
                    else (start, start + len(secret.secret_value))
                )

    return find


def measured(name: str, kind: str, find: Callable[[str], Found], given: list[Any]) -> Claim:
    """How many values of a class are found, how many findings are false, and how long a text takes."""
    counts, samples = Counter[str](), []
    for text, held in given:
        started = time.perf_counter()
        spans = list(find(text))
        samples.append((time.perf_counter() - started) * 1e6)
        values = [
            (text.index(value), text.index(value) + len(value)) for of, value in held if of == kind
        ]
        # A finding that covers a value of another class is no false one: an address in a URL, a password in a DSN.
        others = [
            (text.index(value), text.index(value) + len(value)) for of, value in held if of != kind
        ]
        for start, end in values:
            counts["found" if any(s <= start and end <= e for s, e in spans) else "missed"] += 1
        for s, e in spans:
            if not any(s < end and start < e for start, end in (*values, *others)):
                counts["false"] += 1
    found, false = counts["found"], counts["false"]
    extra = {
        **counts, "recall": round(found / (found + counts["missed"]), 4), "precision": round(found / ((found + false) or 1), 4),
    }  # fmt: skip
    print(
        f"{name:<32} recall {extra['recall']:.3f}  precision {extra['precision']:.3f}  {dict(counts)}"
    )
    return Claim(
        name=name,
        unit="us",
        samples=samples,
        extra=extra,
        conditions="a text of 10 to 300 characters at a time",
    )


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--runs", type=int, default=20, help="texts of every template")
    options.add_argument("--out", type=Path)
    chosen = options.parse_args()
    given = texts(chosen.runs)
    claims = [measured(f"privacy.{kind}", kind, ours(kind), given) for kind in CLASSES]
    if (found := peer()) is not None:
        claims.append(measured("detect-secrets.secret", "secret", found, given))
        claims[0].peer = "detect-secrets.secret"
    big = " ".join(text for text, _ in texts(200))[: 1 << 20]
    speed = []
    for _ in range(5):
        started = time.thread_time()
        for kind in CLASSES:
            list(RULES[kind](big))
        speed.append((time.thread_time() - started) * 1000)
    claims.append(
        Claim(
            name="privacy.all, a MiB",
            unit="ms",
            samples=speed,
            must_p95=100.0,
            conditions="50 ms + 50 ms a MiB is the limit",
        )
    )
    write_results("privacy", claims, chosen.out)


if __name__ == "__main__":
    main()

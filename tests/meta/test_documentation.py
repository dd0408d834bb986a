"""The form of pages: line widths, decisions, links between pages."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pages import outside_blocks

from agentbox.core.paths import CHECKOUT

COLUMNS = 120
PAGES = sorted([*CHECKOUT.glob("*.md"), *CHECKOUT.glob("docs/**/*.md")])
DECISIONS = sorted(CHECKOUT.glob("docs/adr/0*.md"))
PARTS = ("Status:", "## Context", "## Decision", "## Consequences", "## How it is checked")
INDEX = CHECKOUT / "docs/adr/README.md"
GENERATED = frozenset(
    f"docs/{name}.md"
    for name in (
        "attack",
        "features",
        "manifest",
        "rendered",
        "rules",
        "stories/attacks",
    )
)
"""Pages whose text is in the code, until it is rewritten. This set must shrink."""
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)|^\[\w+\]: (\S+)$", re.MULTILINE)


def name_of(page: Path) -> str:
    return str(page.relative_to(CHECKOUT))


def too_wide(text: str) -> Iterator[str]:
    """Lines of prose. A row of a table and a line of a program or its output cannot be broken."""
    lines = (line for line in outside_blocks(text) if not line.startswith("|"))
    return (line for line in lines if len(line) > COLUMNS)


def links(text: str) -> Iterator[str]:
    """Targets in parentheses and of reference definitions, without the part of a page."""
    for inline, defined in _LINK.findall("\n".join(outside_blocks(text))):
        yield inline or defined


def test_lines_of_pages_fit() -> None:
    """At most 120 columns; a generated page within that is removed from the set."""
    wide = {name_of(page): list(too_wide(page.read_text())) for page in PAGES}
    wide = {name: lines for name, lines in wide.items() if lines}
    assert {name: lines[0] for name, lines in wide.items() if name not in GENERATED} == {}
    assert GENERATED - set(wide) == set()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("x" * 121, ["x" * 121]),
        ("x" * 120, []),
        (f"| {'x' * 120} |", []),
        (f"```\n{'x' * 121}\n```\n{'y' * 121}", ["y" * 121]),
    ],
)
def test_a_wide_line_is_found(text: str, found: list[str]) -> None:
    """Outside of tables and blocks."""
    assert list(too_wide(text)) == found


def test_every_decision_has_its_form() -> None:
    """Every ADR has context, decision, consequences, how it is checked and status, and is short."""
    assert len(DECISIONS) >= 8
    for path in DECISIONS:
        text = path.read_text()
        for part in PARTS:
            assert part in text, f"{path.name}: {part}"
        assert len(text.splitlines()) <= 70, path.name


def test_the_index_has_every_decision_and_explains_every_number() -> None:
    """Title, file and status of each; the index calls a number without a file unused."""
    index = " ".join(INDEX.read_text().split())
    numbers = {int(path.name[:4]) for path in DECISIONS}
    for path in DECISIONS:
        text = path.read_text()
        title = re.findall(r"^# (\d+)\. (.+)$", text, re.MULTILINE)[0]
        status = " ".join(re.findall(r"Status: (.+?)\n\n", text, re.DOTALL)[0].split())
        assert int(title[0]) == int(path.name[:4]), path.name
        assert f"| {path.name[:4]} | [{title[1]}]({path.name}) | {status} |" in index, path.name
    sentence = re.findall(r"The numbers (.+?) were never used", index)[0]
    unused = set()
    for first, last in re.findall(r"(\d{4})(?: to (\d{4}))?", sentence):
        unused |= set(range(int(first), int(last or first) + 1))
    assert unused == set(range(1, max(numbers))) - numbers
    assert f"The next number is {max(numbers) + 1:04}." in index


def test_links_between_pages_lead_to_a_file() -> None:
    """A link to another site is not followed."""
    broken = [
        f"{name_of(page)}: {link}"
        for page in PAGES
        for link in links(page.read_text())
        if "://" not in link and not (page.parent / link).exists()
    ]
    assert not broken, "\n".join(broken)

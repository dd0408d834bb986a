"""What comments, docstrings and pages cite is in this repository: pages and their sections, files, decisions, clauses."""

import ast
import functools
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentbox.core.paths import CHECKOUT as ROOT

MADE = frozenset({
    *("README.agentbox.md", "security-report.md", "report.md", "SKILL.md", "config.md"),
    *("agentbox/adapters/pods/local_onefile.py", "tests/contract/test_pods_onefile.py"),
})  # fmt: skip
"""Pages of a box, of an example and of a standard; files that a reader of the howto about adapters makes."""
PAGE = re.compile(
    r"(?<![\w/.*<-])((?:\.\./|[\w-]+/)*[\w.-]+\.md)\b(?:,? (\d+(?:\.\d+)*)\b|, \"([^\"]+)\")?"
)
FILE = re.compile(
    r"(?<![\w/.$~{<>-])((?:agentbox|bench|contrib|docs|schema|tests)/[\w./-]++)(?![*<{])"
)
DECISION = re.compile(r"\bADRs? (\d{4})|\badr/(\d{4})(?![\d-])")
PREDICATE = re.compile(r"\bRC-(\d{3})\b")
CLAUSE = re.compile(r"\(([A-Z])(\d{1,2})(?=\)|, | to |–)")


@functools.cache
def files() -> tuple[str, ...]:
    """Every file of the repository, those that are not committed yet among them."""
    argv = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    return tuple(sorted(name for name in set(listed.splitlines()) if (ROOT / name).is_file()))


@functools.cache
def names() -> frozenset[str]:
    """Every file and directory of the repository."""
    return frozenset({str(at) for file in map(Path, files()) for at in (file, *file.parents)})


@functools.cache
def clauses() -> dict[str, int]:
    """The last number of each letter, as the test of the clauses has it."""
    tree = ast.parse((ROOT / "tests/contract/test_clauses.py").read_text())
    return next(
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "LAST"
    )


def prose(text: str) -> Iterator[str]:
    """Comments and docstrings of a Python source; comments that follow each other are one text."""
    block: list[str] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            block.append(token.string.lstrip("# "))
        elif (
            token.type not in (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
            and block
        ):
            yield " ".join(block)
            block = []
    yield " ".join(block)
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield " ".join(node.value.value.split())


def page_of(cited: str, at: Path) -> Path | None:
    """The page that a name means: beside the one that cites it, in the repository, or in docs/."""
    found = (base / cited for base in (at.parent, ROOT, ROOT / "docs"))
    return next((path for path in found if path.is_file()), None)


def headings(page: Path) -> list[str]:
    """Without their marks."""
    return re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)


def absent(text: str, at: Path) -> Iterator[str]:
    """Each citation of a text that leads nowhere."""
    for cited, number, title in PAGE.findall(text):
        if cited.rpartition("/")[2] in MADE:
            continue
        if (page := page_of(cited, at)) is None:
            yield cited
        elif number and not any(heading.startswith(f"{number}.") for heading in headings(page)):
            yield f"{cited} {number}"
        elif title and title not in headings(page):
            yield f'{cited}, "{title}"'
    for file in (cited.rstrip("./-") for cited in FILE.findall(text)):
        if not {file, f"{file}.py"} & (names() | MADE) and not re.fullmatch(
            r"docs/adr/\d{4}", file
        ):
            yield file
    for number in (one or other for one, other in DECISION.findall(text)):
        if not list((ROOT / "docs/adr").glob(f"{number}-*.md")):
            yield f"ADR {number}"
    for number in PREDICATE.findall(text):
        if not list((ROOT / "tests/runtime-contract").glob(f"test_rc_{number}_*.py")):
            yield f"RC-{number}"
    for letter, number in CLAUSE.findall(text):
        if int(number) > clauses().get(letter, 0):
            yield f"clause {letter}{number}"


CODE = ("agentbox/", "bench/", "contrib/", "tests/")
THIS = str(Path(__file__).relative_to(ROOT))


def test_code_cites_what_is_there() -> None:
    """Comments and docstrings."""
    found = [
        f"{name}: {cited}"
        for name in files()
        if name.startswith(CODE) and name.endswith(".py") and name != THIS
        for whole in [(ROOT / name).read_text()]
        if any(absent(whole, ROOT / name))  # spares most files the tokenizer
        for text in prose(whole)
        for cited in absent(text, ROOT / name)
    ]
    assert not found, "\n".join(found)


def test_pages_cite_what_is_there() -> None:
    """Pages, decisions among them; skills are about repositories of others."""
    found = [
        f"{name}: {cited}"
        for name in files()
        if name.endswith(".md") and not name.startswith(("tests/", "config/skills/"))
        for cited in absent((ROOT / name).read_text(), ROOT / name)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("as slots.md 2.3 has it", ["slots.md"]),
        ("as docs/manifest.md 9 has it", ["docs/manifest.md 9"]),
        (
            'docs/howto/exceptions.md, "No such heading"',
            ['docs/howto/exceptions.md, "No such heading"'],
        ),
        ("as agentbox/no/file.py does", ["agentbox/no/file.py"]),
        ("ADR 9999 and RC-999", ["ADR 9999", "RC-999"]),
        ("it stays (F7), it is read (O15)", ["clause F7"]),
        (
            "docs/manifest.md, agentbox/core/errors.py, ADR 0033, RC-001 and /var/lib/agentbox/x.py",
            [],
        ),
    ],
)
def test_a_citation_of_what_is_absent_is_found(text: str, wanted: list[str]) -> None:
    """Each kind."""
    assert list(absent(text, ROOT / "README.md")) == wanted

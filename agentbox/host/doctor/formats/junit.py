"""A scorecard as JUnit XML: the form that Jenkins and most CI systems read (junit-10.xsd of its xUnit plugin)."""

import re
from typing import Final
from xml.etree import ElementTree

from agentbox.host.doctor.row import Row, Scorecard

# What XML 1.0 has no way to write (section 2.2): most control characters, surrogates, two non-characters.
_UNWRITABLE: Final = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")


def junit(card: Scorecard) -> str:
    """A failure for what failed, `skipped` for what could not be found out, the rest with what was said."""
    skipped = [row for row in card.rows if row.state == "unknown" and row not in card.failed]
    counts = {"tests": str(len(card.rows)), "failures": str(len(card.failed)), "errors": "0", "time": "0"}
    root = ElementTree.Element("testsuites", {"name": "agentbox", **counts})
    suite = ElementTree.SubElement(root, "testsuite", {"name": card.name, **counts, "skipped": str(len(skipped))})
    for row in card.rows:
        _case(suite, card, row)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _case(suite: ElementTree.Element, card: Scorecard, row: Row) -> None:
    case = ElementTree.SubElement(
        suite, "testcase", {"classname": f"{card.name}.{row.check}", "name": _written(row.name), "time": "0"}
    )
    said = _written(f"{row.said}\n{row.advice}".rstrip())
    if row in card.failed:
        ElementTree.SubElement(case, "failure", {"message": _written(row.said), "type": row.state}).text = said
    elif row.state == "unknown":
        ElementTree.SubElement(case, "skipped", {"message": _written(row.said)})
    else:
        ElementTree.SubElement(case, "system-out").text = said


def _written(text: str) -> str:
    return _UNWRITABLE.sub("�", text)

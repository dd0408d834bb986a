"""JUnit XML, as read by Jenkins and most CI systems (junit-10.xsd of its xUnit plugin)."""

import re
from typing import Final
from xml.etree import ElementTree

from agentbox.host.doctor.check_result import CheckResult, DoctorReport

# Not allowed in XML 1.0 (section 2.2): most control characters, surrogates, two noncharacters.
_UNWRITABLE: Final = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")


def render_junit(report: DoctorReport) -> str:
    """Renders failures, `skipped` for unknown results, and messages of the rest as `system-out`."""
    skipped = [
        result
        for result in report.results
        if result.state == "unknown" and result not in report.failed
    ]
    counts = {
        "tests": str(len(report.results)),
        "failures": str(len(report.failed)),
        "errors": "0",
        "time": "0",
    }
    root = ElementTree.Element("testsuites", {"name": "agentbox", **counts})
    suite = ElementTree.SubElement(
        root, "testsuite", {"name": report.name, **counts, "skipped": str(len(skipped))}
    )
    for row in report.results:
        _add_case(suite, report, row)
    ElementTree.indent(root)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        + ElementTree.tostring(root, encoding="unicode")
        + "\n"
    )


def _add_case(suite: ElementTree.Element, report: DoctorReport, result: CheckResult) -> None:
    case = ElementTree.SubElement(
        suite,
        "testcase",
        {
            "classname": f"{report.name}.{result.check}",
            "name": _replace_unwritable(result.name),
            "time": "0",
        },
    )
    text = _replace_unwritable(f"{result.message}\n{result.advice}".rstrip())
    if result in report.failed:
        ElementTree.SubElement(
            case, "failure", {"message": _replace_unwritable(result.message), "type": result.state}
        ).text = text
    elif result.state == "unknown":
        ElementTree.SubElement(case, "skipped", {"message": _replace_unwritable(result.message)})
    else:
        ElementTree.SubElement(case, "system-out").text = text


def _replace_unwritable(text: str) -> str:
    return _UNWRITABLE.sub("�", text)

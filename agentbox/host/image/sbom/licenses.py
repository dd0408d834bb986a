"""The licence of a package, if it is stated in machine-readable form."""

import json
import re
import tarfile
from email.parser import BytesParser
from pathlib import Path
from zipfile import ZipFile

from agentbox.host.image.tree import deb

_MAX_LENGTH = 100  # some projects put the full text into the field
_DEP5 = re.compile(r"^Files:\s*\*\s*$.*?^License:\s*(?P<name>\S[^\n]*)$", re.MULTILINE | re.DOTALL)


def wheel_license(file: Path) -> str:
    """Return License-Expression, else a short License field, else "" (PEP 639)."""
    with ZipFile(file) as archive:
        name = next(
            name
            for name in archive.namelist()
            if name.count("/") == 1 and name.endswith(".dist-info/METADATA")
        )
        headers = BytesParser().parsebytes(archive.read(name), headersonly=True)
    stated = str(headers["License-Expression"] or headers["License"] or "").strip()
    return stated if len(stated) <= _MAX_LENGTH and "\n" not in stated else ""


def npm_license(file: Path) -> str:
    """Return `license` of package.json if it is a short string, else "" (npm-package.json(5))."""
    with tarfile.open(file, mode="r:gz") as tar:
        info = next(member for member in tar if member.name.split("/")[1:] == ["package.json"])
        stream = tar.extractfile(info)
        stated = json.load(stream).get("license") if stream else ""
    return stated if isinstance(stated, str) and len(stated) <= _MAX_LENGTH else ""


def deb_license(file: Path, name: str) -> str:
    """Return the short name of the paragraph `Files: *` of a machine-readable copyright file, else
    "".
    """
    member_name = f"./usr/share/doc/{name}/copyright"
    with deb.open_tar(file, "data") as tar:
        info = next((member for member in tar if member.name == member_name), None)
        stream = tar.extractfile(info) if info is not None and info.isreg() else None
        text = stream.read().decode(errors="replace") if stream else ""
    match = _DEP5.search(text)
    return match["name"].strip() if match else ""

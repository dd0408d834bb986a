"""TeX Live's system files: file lists, hyphenation, font maps, formats (on Debian made by
tex-common's triggers).

The formats follow mktexlsr(1), updmap(1) and fmtutil(1). Only formats of the engines tex and pdftex
are built: those of Lua engines are not reproducible.
"""

import itertools
import shlex
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from agentbox.core.errors import AgentboxError
from agentbox.host.image.maintainer_scripts.root import MergedRoot

_DIST, _DEBIAN, _VAR = "usr/share/texlive/texmf-dist", "usr/share/texmf", "var/lib/texmf"
_SETTINGS = "var/lib/tex-common"
_CONFIG = "tex/generic/config"
_ENGINES = ("pdftex", "tex")
_LISTS: Final = (
    (_DIST, "ls-R-TEXLIVEDIST"),
    (_DEBIAN, "ls-R-TEXMFMAIN"),
)  # targets of Debian's links
_LANGUAGES: Final = (
    ("language.us", "language.dat"),
    ("language.us.def", "language.def"),
    ("language.us.lua", "language.dat.lua"),
)
_MAPS = ("fonts/map/pdftex/updmap/pdftex.map", "fonts/map/dvips/updmap/psfonts.map")
# updmap's LW35 = URWkb: the 35 standard fonts under the names of their free equivalents
_URW = "ps2pk35.map"

_ENVIRONMENT: Final = {
    # A format contains its date; this is that of every file of the image.
    "SOURCE_DATE_EPOCH": "1",
    "FORCE_SOURCE_DATE": "1",
    "TEXMFCNF": f"{_DIST}/web2c",
    "TEXMFROOT": "usr/share/texlive",
    "TEXMFDEBIAN": _DEBIAN,
    # Without !!, which would search file lists only.
    "TEXMF": f"{{made,$TEXMFDEBIAN,{_DIST}}}",
    "TEXMFDBS": "",
    "TEXMFSYSVAR": "made",
    "TEXMFVAR": "made",
    "TEXMFCONFIG": "made",
    "TEXMFHOME": "made",
    "TEXMFLOCAL": "made",
    "TEXMFDOTDIR": ".",
}


def make(root: MergedRoot, out: Path) -> None:
    """Writes `/var/lib/texmf` below `out`. Raises AgentboxError for a file that is in no package or
    a format that cannot be built.
    """
    var = out / _VAR
    for source, name in _LANGUAGES:
        _write(var / _CONFIG / name, root.text(f"{_DIST}/{_CONFIG}/{source}"))
    fonts = _font_map(root)
    for name in _MAPS:
        _write(var / name, fonts)
    _write(var / "updmap.cfg-TEXLIVEDIST", _settings(root, "fontmap-cfg"))
    _write(var / "fmtutil.cnf-TEXLIVEDIST", _settings(root, "fmtutil-cnf"))
    for name in ("updmap.cfg-DEBIAN", "fmtutil.cnf-DEBIAN"):
        _write(var / name, "# No package of Debian's own adds to this.\n")
    _make_formats(root, var)
    for directory, name in _LISTS:
        _write(var / name, _listing(root.files(directory)))
    _write(
        var / "ls-R",
        _listing(
            sorted(path.relative_to(var).as_posix() for path in var.rglob("*") if path.is_file())
        ),
    )


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def _settings(root: MergedRoot, kind: str) -> str:
    """Return the settings of all packages, concatenated. Raises AgentboxError if there are none."""
    directory = f"{_SETTINGS}/{kind}"
    texts = [root.text(f"{directory}/{name}") for name in root.files(directory)]
    if not texts:
        raise AgentboxError(
            f"cannot set up TeX Live: /{directory} is empty",
            "Add texlive-latex-base to the feature.",
        )
    return "".join(texts)


def _font_map(root: MergedRoot) -> str:
    """Return all fonts that the packages enable, one line each (`Map NAME`, `MixedMap NAME`)."""
    rows = (line.split() for line in _settings(root, "fontmap-cfg").splitlines())
    map_names = [row[1] for row in rows if row and row[0] in ("Map", "MixedMap")]
    path_by_name = {path.rpartition("/")[2]: path for path in _map_files(root)}
    lines: list[str] = []
    for name in (_URW, *sorted(map_names)):
        if name not in path_by_name:
            raise AgentboxError(f"cannot set up TeX Live: no package has the font map {name}")
        lines += [f"% {name}", *_map_lines(root.text(path_by_name[name]))]
    return "\n".join(lines) + "\n"


def _map_files(root: MergedRoot) -> Iterator[str]:
    for directory in (f"{_DEBIAN}/fonts/map", f"{_DIST}/fonts/map"):
        yield from (f"{directory}/{path}" for path in root.files(directory))


def _map_lines(text: str) -> list[str]:
    """Return the lines of a map without comments, which begin with one of `%*;#`."""
    return sorted(
        " ".join(line.split())
        for line in text.splitlines()
        if line.strip() and line.strip()[0] not in "%*;#"
    )


def _make_formats(root: MergedRoot, var: Path) -> None:
    shutil.copytree(var, root.directory / "made")
    for name, engine, arguments in _formats(_settings(root, "fmtutil-cnf")):
        root.run(
            f"usr/bin/{engine}",
            ["-ini", f"-jobname={name}", f"-progname={name}", *arguments],
            _ENVIRONMENT,
        )
        target = var / "web2c" / engine / f"{name}.fmt"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(root.directory / f"{name}.fmt", target)


def _formats(text: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yield rows `name engine patterns arguments…` (fmtutil.cnf(5)) of the engines with
    reproducible formats.
    """
    for line in text.splitlines():
        fields = shlex.split(line, comments=True)
        if len(fields) > 3 and fields[1] in _ENGINES:
            yield fields[0], fields[1], fields[3:]


def _listing(paths: Iterable[str]) -> str:
    """Return an ls-R of these files in mktexlsr's format: each directory with its names."""
    blocks = ["% ls-R -- filename database for kpathsea; do not change this line.\n"]
    split = sorted(path.rpartition("/")[::2] for path in paths)
    for directory, rows in itertools.groupby(split, key=lambda row: row[0]):
        blocks.append("\n".join([f"./{directory}:", *(name for _, name in rows)]) + "\n")
    return "\n".join(blocks)

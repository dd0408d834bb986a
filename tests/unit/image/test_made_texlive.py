"""TeX Live's system files match the packages, in the forms that its programs read."""

from pathlib import Path

import pytest

from agentbox.core.errors import AgentboxError
from agentbox.host.image.maintainer_scripts import texlive
from agentbox.host.image.maintainer_scripts.root import MergedRoot

DIST = "usr/share/texlive/texmf-dist"
FILES = {
    f"{DIST}/tex/generic/config/language.us": "english hyphen.tex\n",
    f"{DIST}/tex/generic/config/language.us.def": "\\addlanguage\n",
    f"{DIST}/tex/generic/config/language.us.lua": "return {}\n",
    f"{DIST}/fonts/map/dvips/psfonts/ps2pk35.map": "% the 35\npagd8r  URWGothicL-Demi <8r.enc\n",
    f"{DIST}/fonts/map/dvips/cm/cm.map": "* old form\ncmr7 CMR7 <cmr7.pfb\ncmr10   CMR10   <cmr10.pfb\n\n",
    f"{DIST}/fonts/map/dvips/cm/off.map": "off OFF <off.pfb\n",
    "usr/share/texmf/fonts/map/dvips/lm/lm.map": "lmr10 LMR10 <lmr10.pfb\n",
    "usr/share/texmf/web2c/mktex.cnf": "",
    "var/lib/tex-common/fontmap-cfg/texlive/texlive-base.cfg": "MixedMap cm.map\n#! Map off.map\n",
    "var/lib/tex-common/fontmap-cfg/lmodern.cfg": "Map lm.map\n",
    "var/lib/tex-common/fmtutil-cnf/texlive/base.cnf": "# none\nlualatex luahbtex language.dat lualatex.ini\n",
}


def root_of(folder: Path, files: dict[str, str]) -> MergedRoot:
    for path, text in files.items():
        file = folder / "tree" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return MergedRoot.merged([folder / "tree"], Path("/nonexistent"), folder / "root")


def test_the_files_of_the_system(tmp_path: Path) -> None:
    """Languages, one font map under both names, the settings of all packages, and the content of
    each tree. No format of an engine that dumps differently each time is made: its program would
    not even be found here."""
    texlive.make(root_of(tmp_path, FILES), tmp_path / "out")
    var = tmp_path / "out/var/lib/texmf"
    assert (var / "tex/generic/config/language.dat").read_text() == "english hyphen.tex\n"
    fonts = (var / "fonts/map/pdftex/updmap/pdftex.map").read_text()
    assert fonts.splitlines() == [
        "% ps2pk35.map",
        "pagd8r URWGothicL-Demi <8r.enc",
        "% cm.map",
        "cmr10 CMR10 <cmr10.pfb",
        "cmr7 CMR7 <cmr7.pfb",
        "% lm.map",
        "lmr10 LMR10 <lmr10.pfb",
    ]
    assert (var / "fonts/map/dvips/updmap/psfonts.map").read_text() == fonts
    assert "Map lm.map\n" in (var / "updmap.cfg-TEXLIVEDIST").read_text()
    assert "\n./fonts/map/dvips/cm:\ncm.map\noff.map\n" in (var / "ls-R-TEXLIVEDIST").read_text()
    assert (
        (var / "ls-R-TEXMFMAIN").read_text().startswith("% ls-R -- filename database for kpathsea")
    )
    assert "\n./fonts/map/pdftex/updmap:\npdftex.map\n" in (var / "ls-R").read_text()
    assert not (var / "web2c").exists()


def test_twice_is_the_same(tmp_path: Path) -> None:
    """Two runs produce equal bytes."""
    made = []
    for name in ("a", "b"):
        texlive.make(root_of(tmp_path / name, FILES), tmp_path / name / "out")
        made.append(
            {
                p.relative_to(tmp_path / name): p.read_bytes()
                for p in (tmp_path / name / "out").rglob("*")
                if p.is_file()
            }
        )
    assert made[0] == made[1]
    assert len(made[0]) == 12


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("usr/share/texmf/fonts/map/dvips/lm/lm.map", "no package has the font map lm.map"),
        (
            f"{DIST}/tex/generic/config/language.us",
            "cannot read /usr/share/texlive/texmf-dist/tex/generic/config/language.us",
        ),
        (
            "var/lib/tex-common/fmtutil-cnf/texlive/base.cnf",
            "/var/lib/tex-common/fmtutil-cnf is empty",
        ),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, missing: str, said: str) -> None:
    """A feature without the package that brings a file fails with its name, in the build."""
    files = {path: text for path, text in FILES.items() if path != missing}
    with pytest.raises(AgentboxError, match=said):
        texlive.make(root_of(tmp_path, files), tmp_path / "out")

"""[skills]: the corpus, and programs needed by skills."""

from typing import Annotated

from agentbox.core.frozen import frozen
from agentbox.manifest.declarations.constraints import Unique
from agentbox.manifest.declarations.key import key, table
from agentbox.manifest.types import Glob, HttpUrl, RelativePath


@frozen
class CorpusTable:
    """Which skills go into `/opt/agentbox/skills`."""

    include: Annotated[tuple[Glob, ...], Unique()] = key(
        ("*",), "rebuild", doc="Skills to take, by name or glob."
    )
    exclude: Annotated[tuple[Glob, ...], Unique()] = key(
        (), "rebuild", doc="Skills to leave out of those, by name or glob."
    )
    paths: Annotated[tuple[RelativePath, ...], Unique()] = key(
        (),
        "rebuild",
        doc="Folders beside the manifest with further skills, one folder each.",
    )


@frozen
class BrowserTable:
    """A browser that agents drive."""

    playwright: bool = key(False, "rebuild", doc="Browser automation.")
    headed: bool = key(
        False,
        "boot",
        doc="Show the browser on the desktop; refused until a release does (E606).",
        when={".playwright": True},
    )


@frozen
class MediaTable:
    """Sound, film, pictures."""

    ffmpeg: bool = key(False, "rebuild", doc="Sound and film.")
    imagemagick: bool = key(False, "rebuild", doc="Pictures.")
    comfyui_builtin: bool = key(False, "rebuild", doc="Image generation in the box, on port 8188.")
    comfyui_url: HttpUrl = key("", "boot", doc="An instance of it elsewhere.")


@frozen
class SpatialTable:
    """Bodies, maps, scenes."""

    blender: bool = key(False, "rebuild", doc="Modelling and rendering.")
    qgis: bool = key(False, "rebuild", doc="Maps.")
    gaussian_splatting: bool = key(
        False, "rebuild", doc='Scenes trained from photographs; needs `gpu.backend = "local-cuda"`.'
    )


@frozen
class DataScienceTable:
    """Notebooks and tensors."""

    jupyter: bool = key(False, "rebuild", doc="Notebooks on port 8888, never without a token.")
    pytorch: bool = key(False, "rebuild", doc="Tensors and learning.")


@frozen
class DocsTable:
    """Documents."""

    latex: bool = key(False, "rebuild", doc="Typesetting.")
    mermaid: bool = key(False, "rebuild", doc="Diagrams from text.")
    pandoc: bool = key(False, "rebuild", doc="Conversion between document forms.")


@frozen
class SkillsTable:
    """The skills corpus, and the programs that skills need."""

    corpus: CorpusTable = table(CorpusTable)
    browser: BrowserTable = table(BrowserTable)
    media: MediaTable = table(MediaTable)
    spatial_and_3d: SpatialTable = table(SpatialTable)
    data_science: DataScienceTable = table(DataScienceTable)
    docs: DocsTable = table(DocsTable)

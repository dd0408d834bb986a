"""[skills]: the corpus, and programs needed by skills."""

from dataclasses import dataclass, field
from typing import Annotated

from agentbox.manifest.types import Glob, HttpUrl, Unique, key


@dataclass(frozen=True, kw_only=True)
class CorpusTable:
    """[skills.corpus]: skills in the image, by name or glob."""

    include: Annotated[tuple[Glob, ...], Unique()] = key(("*",), "rebuild")
    exclude: Annotated[tuple[Glob, ...], Unique()] = key((), "rebuild")


@dataclass(frozen=True, kw_only=True)
class BrowserTable:
    """[skills.browser]: a browser for agents."""

    playwright: bool = key(False, "rebuild")
    headed: bool = key(False, "boot")


@dataclass(frozen=True, kw_only=True)
class MediaTable:
    """[skills.media]: audio, video, images."""

    ffmpeg: bool = key(False, "rebuild")
    imagemagick: bool = key(False, "rebuild")
    comfyui_builtin: bool = key(False, "rebuild")
    comfyui_url: HttpUrl = key("", "boot")


@dataclass(frozen=True, kw_only=True)
class SpatialTable:
    """[skills.spatial_and_3d]: 3D models, maps, scenes."""

    blender: bool = key(False, "rebuild")
    qgis: bool = key(False, "rebuild")
    gaussian_splatting: bool = key(False, "rebuild")


@dataclass(frozen=True, kw_only=True)
class DataScienceTable:
    """[skills.data_science]: notebooks and machine learning."""

    jupyter: bool = key(False, "rebuild")
    pytorch: bool = key(False, "rebuild")


@dataclass(frozen=True, kw_only=True)
class DocsTable:
    """[skills.docs]: documents."""

    latex: bool = key(False, "rebuild")
    mermaid: bool = key(False, "rebuild")
    pandoc: bool = key(False, "rebuild")


@dataclass(frozen=True, kw_only=True)
class SkillsTable:
    """One table per kind of work."""

    corpus: CorpusTable = field(default_factory=CorpusTable)
    browser: BrowserTable = field(default_factory=BrowserTable)
    media: MediaTable = field(default_factory=MediaTable)
    spatial_and_3d: SpatialTable = field(default_factory=SpatialTable)
    data_science: DataScienceTable = field(default_factory=DataScienceTable)
    docs: DocsTable = field(default_factory=DocsTable)

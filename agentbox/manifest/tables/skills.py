"""[skills]: the corpus, and the programs that skills need."""

from dataclasses import dataclass, field
from typing import Annotated

from agentbox.manifest.types import Glob, HttpUrl, Unique, key


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """[skills.corpus]: which skills go into the image, by name or glob."""

    include: Annotated[tuple[Glob, ...], Unique()] = key(("*",), "rebuild")
    exclude: Annotated[tuple[Glob, ...], Unique()] = key((), "rebuild")


@dataclass(frozen=True, kw_only=True)
class Browser:
    """[skills.browser]: a browser that agents drive."""

    playwright: bool = key(False, "rebuild")
    headed: bool = key(False, "boot")


@dataclass(frozen=True, kw_only=True)
class Media:
    """[skills.media]: sound, film, pictures."""

    ffmpeg: bool = key(False, "rebuild")
    imagemagick: bool = key(False, "rebuild")
    comfyui_builtin: bool = key(False, "rebuild")
    comfyui_url: HttpUrl = key("", "boot")


@dataclass(frozen=True, kw_only=True)
class Spatial:
    """[skills.spatial_and_3d]: bodies, maps, scenes."""

    blender: bool = key(False, "rebuild")
    qgis: bool = key(False, "rebuild")
    gaussian_splatting: bool = key(False, "rebuild")


@dataclass(frozen=True, kw_only=True)
class DataScience:
    """[skills.data_science]: notebooks and tensors."""

    jupyter: bool = key(False, "rebuild")
    pytorch: bool = key(False, "rebuild")


@dataclass(frozen=True, kw_only=True)
class Docs:
    """[skills.docs]: documents."""

    latex: bool = key(False, "rebuild")
    mermaid: bool = key(False, "rebuild")
    pandoc: bool = key(False, "rebuild")


@dataclass(frozen=True, kw_only=True)
class Skills:
    """One table a kind of work."""

    corpus: Corpus = field(default_factory=Corpus)
    browser: Browser = field(default_factory=Browser)
    media: Media = field(default_factory=Media)
    spatial_and_3d: Spatial = field(default_factory=Spatial)
    data_science: DataScience = field(default_factory=DataScience)
    docs: Docs = field(default_factory=Docs)

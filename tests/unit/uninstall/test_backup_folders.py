"""A folder of this host given as `backup.folder` is named as kept, also where a step would remove it."""

from pathlib import Path

from agentbox.host.engines.state import BoxRecord, BoxState
from agentbox.host.uninstall.backup_folders import backup_folders, without_folders
from agentbox.host.uninstall.removal import Kept, Removal


def test_a_backup_folder_is_kept_with_what_has_it(tmp_path: Path) -> None:
    """It is read from the manifest of the record; a volume is not a folder of the host."""
    state = BoxState(tmp_path / "web")
    state.directory.mkdir()
    folder, manifest = state.directory / "snapshots", tmp_path / "agentbox.toml"
    manifest.write_text(f'[backup]\nfolder = "{folder}"\n')
    record = BoxRecord(engine="docker", name="web", api_url="", manifest=str(manifest))
    state.save_record(record)
    assert backup_folders([state]) == [folder]
    steps = [
        Removal(kind="state", name=str(state.directory), remove=lambda: None),
        Removal(kind="state", name=str(tmp_path / "other"), remove=lambda: None),
    ]
    kept, stays, goes = without_folders(steps, [folder])
    assert isinstance(kept, Kept)
    assert (kept.name, kept.foreign) == (str(folder), True)
    assert isinstance(stays, Kept)
    assert stays.name == str(state.directory)
    assert goes == steps[1]
    manifest.write_text('[backup]\nfolder = "snapshots"\n')
    assert backup_folders([state]) == []

"""Files that commands make of templates."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from string import Template

from cntk.core.storage.files import write_file


def text_of(folder: str, *path: str) -> str:
    """The text of a file in a folder of templates."""
    return (files(__package__) / folder).joinpath(*path).read_text("utf-8")


def filled(folder: str, paths: Mapping[str, str], values: Mapping[str, str]) -> dict[str, str]:
    """The texts of templates with values in the place of names, by their paths.

    Args:
        folder: the folder of templates.
        paths: what the file made of each template is called; in templates and their paths names begin with ``$``.
        values: by name.
    """
    return {
        Template(path).substitute(values): Template(text_of(folder, *Template(template).substitute(values).split("/"))).substitute(values)
        for template, path in paths.items()
    }


def write_new(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write files into a folder that has none.

    Raises:
        FileExistsError: there is something in the folder.
        OSError: they cannot be written.
    """
    parent = next(part for part in (folder, *folder.absolute().parents) if part.exists())
    if not parent.is_dir():
        raise FileExistsError(f"'{parent}' is a file; choose another folder")
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"'{folder}' exists and is not empty; choose another folder, or remove it")
    for path, content in contents.items():
        write_file(folder / path, [content])

"""Files that hold images: on their own, or in a zip archive."""

from __future__ import annotations

import zipfile
import zlib

from ...core.lock import Lock

IN_ARCHIVE = "@/"
"""What stands between an archive and the name of a file in it: ``pictures.zip@/cats/1.jpg``."""


class Files:
    """Reads files, from several threads at once; archives stay open."""

    def __init__(self) -> None:
        self._archives: dict[str, zipfile.ZipFile] = {}
        self._lock = Lock()

    def read(self, path: str) -> bytes:
        """The bytes of a file.

        Args:
            path: the file, or an archive and a file in it.

        Raises:
            ValueError: it cannot be read.
        """
        archive, inside, name = path.partition(IN_ARCHIVE)
        try:
            if inside:
                return self._archive(archive).read(name)
            with open(path, "rb") as file:
                return file.read()
        except OSError as error:
            raise ValueError(error.strerror or str(error)) from None
        except KeyError:
            raise ValueError(f"the archive '{archive}' has no file '{name}'") from None
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
            raise ValueError(f"the archive '{archive}' cannot be read: {error}") from None

    def _archive(self, path: str) -> zipfile.ZipFile:
        with self._lock:
            if path not in self._archives:
                self._archives[path] = zipfile.ZipFile(path)
            return self._archives[path]

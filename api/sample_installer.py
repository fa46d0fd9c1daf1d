"""Fetching CNTK's samples."""

from __future__ import annotations

from typing import NoReturn


def install_samples(url: str | None = None, directory: str | None = None, quiet: bool = False) -> NoReturn:
    """Refuse to fetch CNTK's samples: this package downloads nothing.

    Raises:
        RuntimeError: always.

    >>> from cntk.sample_installer import install_samples
    >>> install_samples()
    Traceback (most recent call last):
        ...
    RuntimeError: install_samples: CNTK's samples are not downloaded; ...
    """
    raise RuntimeError(
        "install_samples: CNTK's samples are not downloaded; the programs in the folder Examples of a copy of CNTK's sources, and those in "
        "the folder examples of this project, run as they are"
    )


__all__ = ["install_samples"]

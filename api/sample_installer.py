"""Fetching CNTK's samples."""

from __future__ import annotations

from typing import NoReturn


def install_samples(url: str | None = None, directory: str | None = None, quiet: bool = False) -> NoReturn:
    """Refuse to fetch CNTK's samples: the address that CNTK took them from no longer answers.

    Raises:
        RuntimeError: always.
    """
    raise RuntimeError(
        "install_samples: cntk.ai, where CNTK's samples were, no longer serves them; "
        "the programs in the folder examples of this project run as they are"
    )


__all__ = ["install_samples"]

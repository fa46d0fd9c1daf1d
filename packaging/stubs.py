"""Brings the stubs of the checkout up to date, which have the names that built-in plugins register."""

from __future__ import annotations

from pathlib import Path

from cntk.internal.stubs import OF_PACKAGE, is_built_in, stubs

ROOT = Path(__file__).resolve().parents[1]


def files() -> dict[Path, str]:
    """The stubs by their paths in the checkout, where learners are not in ``api``."""
    made = stubs(OF_PACKAGE, is_built_in)
    return {ROOT / (path if path.startswith("learners/") else f"api/{path}"): text for path, text in made.items()}


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")

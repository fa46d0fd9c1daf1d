"""The old name of :mod:`cntk.learners`."""

from typing import Any

from cntk import learners


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return learners.__all__
    return getattr(learners, name)

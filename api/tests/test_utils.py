"""Names that CNTK's notebooks import."""

from __future__ import annotations

import os

from cntk.core.extension.device import cpu, gpu, try_set_default_device


def set_device_from_pytest_env() -> None:
    """Choose the device that the environment variable ``TEST_DEVICE`` names (``cpu`` or ``gpu``); without it, do nothing."""
    wanted = os.environ.get("TEST_DEVICE")
    if wanted is not None:
        try_set_default_device(cpu() if wanted == "cpu" else gpu(0))


__all__ = ["set_device_from_pytest_env"]

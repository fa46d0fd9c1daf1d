"""The backend."""

from typing import Any

from cntk.extend import NumpyBackend


class CountingBackend(NumpyBackend):
    """NumPy's arrays on one of two devices, which count what is sent to them and asked for.

    Args:
        device_id: number of the device.

    Attributes:
        sent: bytes that have gone to the device.
        fetched: bytes that have come from it.
    """

    name = "counting"

    def __init__(self, device_id: int = 0) -> None:
        super().__init__(device_id)
        self.sent = self.fetched = 0

    def describe(self) -> str:
        return f"{super().describe()}, which counts what it is sent"

    def device_count(self) -> int:
        return 2

    def asarray(self, data: Any, dtype: Any) -> Any:
        made = super().asarray(data, dtype)
        self.sent += made.nbytes
        return made

    def load(self, array: Any, data: Any) -> None:
        super().load(array, data)
        self.sent += array.nbytes

    def on_device(self, *data: Any) -> Any:
        self.sent += sum(array.nbytes for array in data)
        return super().on_device(*data)

    def to_numpy(self, array: Any) -> Any:
        self.fetched += array.nbytes
        return super().to_numpy(array)

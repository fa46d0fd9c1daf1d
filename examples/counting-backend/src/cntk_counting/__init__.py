"""A backend of its own: NumPy, with two devices that count the bytes they are sent and asked for."""

from cntk.extend import Register, hookimpl


@hookimpl
def cntk_register_backends(register: Register) -> None:
    register("counting", "cntk_counting.backend:CountingBackend")

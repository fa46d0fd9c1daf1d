"""The checking backend: NumPy's arrays, and checks of what operators read and write."""

from ...core.extension.hookspecs import Register, hookimpl


@hookimpl
def cntk_register_backends(register: Register) -> None:
    register("checking", "cntk.backends.checking.backend:CheckingBackend")

"""NVIDIA GPUs by CuPy, which is imported when a GPU is requested."""

from ...core.extension.hookspecs import Register, hookimpl


@hookimpl
def cntk_register_backends(register: Register) -> None:
    register("cupy", "cntk.backends.cupy.backend:CupyBackend")

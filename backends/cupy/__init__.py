"""CUDA through CuPy: operators, chains and learners' steps as kernels of generated CUDA C++."""

from ...core.extension.hookspecs import RegisterEngine, RegisterKernel, hookimpl

LEARNERS: tuple[str, ...] = ()
"""Learners that have a kernel, which is called like them."""

OPERATORS: dict[str, str] = {}
"""The kernel of each operator."""

ENGINES: dict[str, str] = {}
"""What serves several operators."""


@hookimpl
def cntk_register_kernels(register: RegisterKernel) -> None:
    for learner in LEARNERS:
        register(f"cntk.learners.{learner}", "cupy", f"cntk.backends.cupy.learner_kernels:{learner.partition(':')[2]}")
    for operator, kernel in OPERATORS.items():
        register(f"cntk.plugins.ops.{operator}", "cupy", f"cntk.backends.cupy.{kernel}")


@hookimpl
def cntk_register_engines(register: RegisterEngine) -> None:
    for name, engine in ENGINES.items():
        register(name, "cupy", f"cntk.backends.cupy.{engine}")

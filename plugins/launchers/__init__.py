"""The built-in ways of starting the workers of a job, a file each."""

from ...core.extension.hookspecs import Register, hookimpl


@hookimpl
def cntk_register_launchers(register: Register) -> None:
    register("mpi", "cntk.plugins.launchers.mpi:launch")
    register("tcp", "cntk.plugins.launchers.tcp:launch")

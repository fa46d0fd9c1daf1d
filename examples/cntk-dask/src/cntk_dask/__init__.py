"""A plugin that starts the workers of ``cntk launch --with dask`` on a cluster of Dask."""

from cntk.core.extension.hookspecs import Register, hookimpl


@hookimpl
def cntk_register_launchers(register: Register) -> None:
    register("dask", "cntk_dask.launcher:launch")

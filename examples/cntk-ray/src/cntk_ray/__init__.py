"""A plugin that starts the workers of ``cntk launch --with ray`` on a cluster of Ray."""

from cntk.core.extension.hookspecs import Register, hookimpl


@hookimpl
def cntk_register_launchers(register: Register) -> None:
    register("ray", "cntk_ray.launcher:launch")

"""A plugin that cannot be imported."""

raise RuntimeError("this plugin is broken on purpose")

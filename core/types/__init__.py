"""What is known before there are data: axes, specs, types; and how rows lie."""

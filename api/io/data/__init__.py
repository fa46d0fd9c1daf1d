"""Minibatch sources over what other libraries hold: how columns become streams, where rows come from, and in what order they are served."""

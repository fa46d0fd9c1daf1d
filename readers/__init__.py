"""Readers: where minibatches come from."""

"""Recurrences for backends of GPUs: a loop's calls as operations on rows, and the order in which threads do them; nothing of any language."""

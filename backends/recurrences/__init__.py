"""Recurrences for backends of GPUs: a loop's calls as operations on rows, and in which order threads do them, in no language yet."""

"""Statistics of data, for normalising inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from cntk.core.values.value import NDArrayView

ROWS = 4096
"""Samples that are read at a time."""

LEAST_VARIANCE = 1e-10
"""An element that is always the same is not divided by zero."""


def compute_input_per_dim_means_and_inv_std_devs(
    minibatch_source: Any, computed_means_and_inv_stddevs: dict[Any, Any], device: Any = None
) -> None:
    """Go through a source once for mean and inverse standard deviation of each element of its samples.

    Args:
        minibatch_source: the source; it must end, for instance after ``max_sweeps=1``, and is at its end afterwards.
        computed_means_and_inv_stddevs: by stream a pair, which is replaced by one of ``NDArrayView`` objects of the stream's shape: the
            means, and one divided by the standard deviations (those of the samples themselves, at least 1e-5).
        device: where the results live.

    Raises:
        ValueError: a stream is sparse, or the source has no samples of it.

    Example:
        >>> x = np.array([[1, 2], [3, 6]], dtype=np.float32)
        >>> source = C.io.MinibatchSourceFromData({'x': x}, max_samples=2)
        >>> statistics = {source.streams.x: (None, None)}
        >>> C.cntk_py.compute_input_per_dim_means_and_inv_std_devs(source, statistics)
        >>> [view.asarray().tolist() for view in statistics[source.streams.x]]
        [[2.0, 4.0], [1.0, 0.5]]
    """
    streams = list(computed_means_and_inv_stddevs)
    for stream in streams:
        if stream.is_sparse:
            raise ValueError(f"statistics of stream {stream.name!r}: it is sparse, whose samples are not shifted; leave it out")
    sums = {stream: _Moments() for stream in streams}
    while minibatch := minibatch_source.next_minibatch(ROWS):
        for stream in streams:
            if stream in minibatch:
                sequences = minibatch[stream].as_sequences()
                sums[stream].add(np.concatenate([sequence.reshape(-1, *stream.sample_shape) for sequence in sequences]))
    for stream, moments in sums.items():
        if not moments.count:
            raise ValueError(f"statistics of stream {stream.name!r}: the source gave no samples of it")
        results = moments.mean, 1 / np.sqrt(np.maximum(moments.squares / moments.count, LEAST_VARIANCE))
        views = [NDArrayView.from_dense(result.reshape(stream.sample_shape).astype(stream.dtype), device) for result in results]
        computed_means_and_inv_stddevs[stream] = tuple(views)


class _Moments:
    """Mean and sum of squared differences from it, updated by groups of samples.

    Source: Chan, Golub, LeVeque, Updating Formulae and a Pairwise Algorithm for Computing Sample Variances, 1979.
    """

    def __init__(self) -> None:
        self.count = 0
        self.mean: Any = 0.0
        self.squares: Any = 0.0

    def add(self, samples: Any) -> None:
        """Take in an array of samples, on its first axis."""
        count, mean = len(samples), samples.mean(axis=0, dtype=np.float64)
        change, total = mean - self.mean, self.count + count
        self.squares = self.squares + ((samples - mean) ** 2).sum(axis=0) + change**2 * (self.count * count / total)
        self.mean = self.mean + change * (count / total)
        self.count = total

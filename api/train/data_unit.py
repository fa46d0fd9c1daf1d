"""Units in which frequencies are given."""

from enum import Enum, IntEnum


class DataUnit(IntEnum):
    """What a frequency counts.

    >>> x, w = C.input_variable(1), C.parameter(1)
    >>> trainer = C.Trainer(None, C.squared_error(x * w, 1), C.sgd([w], 0.1))
    >>> def validate(index, average, samples, minibatches):
    ...     print('after', trainer.total_number_of_samples_seen, 'samples')
    ...     return True
    >>> validation = C.CrossValidationConfig(frequency=(2, C.DataUnit.minibatch), callback=validate)
    >>> C.training_session(trainer, (np.ones((12, 1), np.float32),), 3, max_samples=12, cv_config=validation).train()
    after 6 samples
    after 12 samples
    """

    sweep = 0
    """Passes over the data."""
    sample = 1
    """Samples."""
    minibatch = 2
    """Minibatches."""

    __str__ = Enum.__str__

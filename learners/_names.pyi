# Names that plugins register, for editors and type checkers; made by: make stubs

from collections.abc import Iterable
from cntk.core.graph.variable import Parameter
from cntk.learners.learner import Learner
from cntk.learners.schedules import ScheduleLike

from cntk.learners.universal_learner import universal as universal

def adadelta(
    parameters: Iterable[Parameter],
    lr: ScheduleLike = ...,
    rho: float = 0.95,
    epsilon: float = 1e-08,
    l1_regularization_weight: float = 0.0,
    l2_regularization_weight: float = 0.0,
    gaussian_noise_injection_std_dev: ScheduleLike = 0.0,
    gradient_clipping_threshold_per_sample: float = ...,
    gradient_clipping_with_truncation: bool = True,
    use_mean_gradient: bool | None = None,
    minibatch_size: int | None = None,
    epoch_size: int | None = None,
) -> Learner:
    """AdaDelta: a step is the gradient times the ratio of the root mean squares of past steps and past gradients.

    ``a = rho * a + (1 - rho) * g**2; d = sqrt(x + epsilon) / sqrt(a + epsilon) * g; x = rho * x + (1 - rho) * d**2; w -= lr * d``.

    Args:
        lr: learning rate, 1 per sample if not given.
        rho: decay of both mean squares, at each update.
        epsilon: added to both mean squares; the size of the first steps follows from it.
        l1_regularization_weight: per sample; parameters move towards 0 by it, times the learning rate, and stop there.
        l2_regularization_weight: per sample; multiples of the parameters that are added to the (clipped) gradient.
        gaussian_noise_injection_std_dev: standard deviation of the noise added to the parameters at each update: a number, a list or
            a schedule.
        gradient_clipping_threshold_per_sample: largest size of the elements, or of the norm, of a parameter's gradient per sample.
        gradient_clipping_with_truncation: True clips the elements, False scales each parameter's gradient to the norm.
        use_mean_gradient: legacy; True means ``minibatch_size=IGNORE``.
        minibatch_size: number of samples that learning rate and momentum refer to where their schedules do not say; ``IGNORE``: the
            gradient is the minibatch's mean.
        epoch_size: number of samples that each value of a list of learning rates or momenta is for; None for a sweep through the data.

    The other arguments, and the errors, are those of :func:`sgd`.

    Source: M. D. Zeiler: ADADELTA: An Adaptive Learning Rate Method, 2012, arXiv:1212.5701.

    Example:
        >>> w = C.parameter(2, init=1)
        >>> learner = C.adadelta([w], rho=0.75, epsilon=0.25)
        >>> learner.update({w: np.array([2, 4], dtype=np.float32)}, 4)
        True
        >>> w.value.round(3)
        array([0.106, 0.03 ], dtype=float32)
    """

def adagrad(
    parameters: Iterable[Parameter],
    lr: ScheduleLike,
    need_ave_multiplier: bool = True,
    l1_regularization_weight: float = 0.0,
    l2_regularization_weight: float = 0.0,
    gaussian_noise_injection_std_dev: ScheduleLike = 0.0,
    gradient_clipping_threshold_per_sample: float = ...,
    gradient_clipping_with_truncation: bool = True,
    use_mean_gradient: bool | None = None,
    minibatch_size: int | None = None,
    epoch_size: int | None = None,
) -> Learner:
    """AdaGrad: ``a += g**2; w -= lr / average * g / sqrt(a)``.

    Args:
        need_ave_multiplier: True divides by the *average* of ``1 / sqrt(a)`` over the parameter (over the rows present, of a
            row-sparse gradient), so that the step is about as large as plain descent would make it; with an element that never had a
            gradient the others then do not move.  False does not divide.
        l1_regularization_weight: per sample; parameters move towards 0 by it, times the learning rate, and stop there.
        l2_regularization_weight: per sample; multiples of the parameters that are added to the (clipped) gradient.
        gaussian_noise_injection_std_dev: standard deviation of the noise added to the parameters at each update: a number, a list or
            a schedule.
        gradient_clipping_threshold_per_sample: largest size of the elements, or of the norm, of a parameter's gradient per sample.
        gradient_clipping_with_truncation: True clips the elements, False scales each parameter's gradient to the norm.
        use_mean_gradient: legacy; True means ``minibatch_size=IGNORE``.
        minibatch_size: number of samples that learning rate and momentum refer to where their schedules do not say; ``IGNORE``: the
            gradient is the minibatch's mean.
        epoch_size: number of samples that each value of a list of learning rates or momenta is for; None for a sweep through the data.

    The other arguments, and the errors, are those of :func:`sgd`.

    Source: J. Duchi, E. Hazan, Y. Singer: Adaptive Subgradient Methods for Online Learning and Stochastic Optimization, JMLR 2011.

    Example:
        >>> w = C.parameter(2, init=1)
        >>> learner = C.adagrad([w], lr=2, need_ave_multiplier=False)
        >>> learner.update({w: np.array([2, 4], dtype=np.float32)}, 4)
        True
        >>> w.value
        array([0.5, 0.5], dtype=float32)
    """

def adam(
    parameters: Iterable[Parameter],
    lr: ScheduleLike,
    momentum: ScheduleLike,
    unit_gain: bool = True,
    variance_momentum: ScheduleLike = ...,
    l1_regularization_weight: float = 0.0,
    l2_regularization_weight: float = 0.0,
    gaussian_noise_injection_std_dev: ScheduleLike = 0.0,
    gradient_clipping_threshold_per_sample: float = ...,
    gradient_clipping_with_truncation: bool = True,
    use_mean_gradient: bool | None = None,
    epsilon: float = 1e-08,
    adamax: bool = False,
    minibatch_size: int | None = None,
    epoch_size: int | None = None,
) -> Learner:
    """Adam, or Adamax.

    With *n* the number of updates so far, ``m = momentum * m + gain * g; v = variance_momentum * v + (1 - variance_momentum) * g**2``
    and ``w -= lr * sqrt(1 - variance_momentum**n) / (1 - momentum**n) * m / (sqrt(v) + epsilon)``.  For Adamax
    ``v = max(variance_momentum * v, |g|)`` and ``w -= lr / (1 - momentum**n) * m / (v + epsilon)``.

    Args:
        momentum: decay of the mean gradient: a number, a list or a schedule.
        unit_gain: True weighs the new gradient by ``1 - momentum``, as in the paper; False by 1.
        variance_momentum: decay of the mean square, or of the maximum.
        epsilon: keeps the divisor away from 0.
        adamax: whether to use the maximum in place of the mean square.
        l1_regularization_weight: per sample; parameters move towards 0 by it, times the learning rate, and stop there.
        l2_regularization_weight: per sample; multiples of the parameters that are added to the (clipped) gradient.
        gaussian_noise_injection_std_dev: standard deviation of the noise added to the parameters at each update: a number, a list or
            a schedule.
        gradient_clipping_threshold_per_sample: largest size of the elements, or of the norm, of a parameter's gradient per sample.
        gradient_clipping_with_truncation: True clips the elements, False scales each parameter's gradient to the norm.
        use_mean_gradient: legacy; True means ``minibatch_size=IGNORE``.
        minibatch_size: number of samples that learning rate and momentum refer to where their schedules do not say; ``IGNORE``: the
            gradient is the minibatch's mean.
        epoch_size: number of samples that each value of a list of learning rates or momenta is for; None for a sweep through the data.

    The other arguments, and the errors, are those of :func:`sgd`.

    Source: D. P. Kingma, J. Ba: Adam: A Method for Stochastic Optimization, ICLR 2015.

    Example:
        >>> w = C.parameter(2, init=1)
        >>> learner = C.adam([w], lr=0.5, momentum=0.9, variance_momentum=0.999, minibatch_size=C.learners.IGNORE)
        >>> learner.update({w: np.array([2, 4], dtype=np.float32)}, 4)
        True
        >>> w.value.round(3)
        array([0.5, 0.5], dtype=float32)
    """

def fsadagrad(
    parameters: Iterable[Parameter],
    lr: ScheduleLike,
    momentum: ScheduleLike,
    unit_gain: bool = True,
    variance_momentum: ScheduleLike = ...,
    l1_regularization_weight: float = 0.0,
    l2_regularization_weight: float = 0.0,
    gaussian_noise_injection_std_dev: ScheduleLike = 0.0,
    gradient_clipping_threshold_per_sample: float = ...,
    gradient_clipping_with_truncation: bool = True,
    use_mean_gradient: bool | None = None,
    minibatch_size: int | None = None,
    epoch_size: int | None = None,
) -> Learner:
    """FSAdaGrad: momentum over scaled gradients, a relative of Adam that weighs minibatches by their number of samples.

    With *m* the number of samples of the minibatch, ``n = variance_momentum * n + (1 - variance_momentum) * m``,
    ``a = variance_momentum * a + (1 - variance_momentum) * g**2``, ``v = momentum * v + gain * min(sqrt(n / a), 10) * g``
    and ``w -= lr * v``.

    Args:
        momentum: decay of the velocity: a number, a list or a schedule.
        unit_gain: True weighs the new gradient by ``1 - momentum``, so that the sum of all weights is 1; False by 1.
        variance_momentum: decay of the mean square.
        l1_regularization_weight: per sample; parameters move towards 0 by it, times the learning rate, and stop there.
        l2_regularization_weight: per sample; multiples of the parameters that are added to the (clipped) gradient.
        gaussian_noise_injection_std_dev: standard deviation of the noise added to the parameters at each update: a number, a list or
            a schedule.
        gradient_clipping_threshold_per_sample: largest size of the elements, or of the norm, of a parameter's gradient per sample.
        gradient_clipping_with_truncation: True clips the elements, False scales each parameter's gradient to the norm.
        use_mean_gradient: legacy; True means ``minibatch_size=IGNORE``.
        minibatch_size: number of samples that learning rate and momentum refer to where their schedules do not say; ``IGNORE``: the
            gradient is the minibatch's mean.
        epoch_size: number of samples that each value of a list of learning rates or momenta is for; None for a sweep through the data.

    The other arguments, and the errors, are those of :func:`sgd`.

    Source: the learner is CNTK's own; it follows J. Duchi, E. Hazan, Y. Singer: Adaptive Subgradient Methods, JMLR 2011.

    Example:
        >>> w = C.parameter(2, init=1)
        >>> learner = C.fsadagrad([w], lr=0.5, momentum=0.5, variance_momentum=0.75)
        >>> learner.update({w: np.array([2, 4], dtype=np.float32)}, 4)
        True
        >>> w.value
        array([0.875, 0.875], dtype=float32)
    """

def momentum_sgd(
    parameters: Iterable[Parameter],
    lr: ScheduleLike,
    momentum: ScheduleLike,
    unit_gain: bool = True,
    l1_regularization_weight: float = 0.0,
    l2_regularization_weight: float = 0.0,
    gaussian_noise_injection_std_dev: ScheduleLike = 0.0,
    gradient_clipping_threshold_per_sample: float = ...,
    gradient_clipping_with_truncation: bool = True,
    use_mean_gradient: bool | None = None,
    minibatch_size: int | None = None,
    epoch_size: int | None = None,
) -> Learner:
    """Stochastic gradient descent with momentum: ``v = momentum * v + gain * lr * g; w -= v``.

    The learning rate is inside the velocity *v*: a new rate holds for new gradients only.  Of a row-sparse gradient only the rows
    that are present move, and there, as in CNTK, the rate is outside: ``v = momentum * v + gain * g; w -= lr * v``.

    Args:
        momentum: a number, a list or a schedule; of each minibatch, or of the number of samples its schedule refers to.
        unit_gain: True weighs the new gradient by ``1 - momentum``, so that the sum of all weights is 1; False by 1.
        l1_regularization_weight: per sample; parameters move towards 0 by it, times the learning rate, and stop there.
        l2_regularization_weight: per sample; multiples of the parameters that are added to the (clipped) gradient.
        gaussian_noise_injection_std_dev: standard deviation of the noise added to the parameters at each update: a number, a list or
            a schedule.
        gradient_clipping_threshold_per_sample: largest size of the elements, or of the norm, of a parameter's gradient per sample.
        gradient_clipping_with_truncation: True clips the elements, False scales each parameter's gradient to the norm.
        use_mean_gradient: legacy; True means ``minibatch_size=IGNORE``.
        minibatch_size: number of samples that learning rate and momentum refer to where their schedules do not say; ``IGNORE``: the
            gradient is the minibatch's mean.
        epoch_size: number of samples that each value of a list of learning rates or momenta is for; None for a sweep through the data.

    The other arguments, and the errors, are those of :func:`sgd`.

    Example:
        >>> w = C.parameter(2, init=1)
        >>> learner = C.momentum_sgd([w], lr=0.5, momentum=0.5)
        >>> gradient = np.array([2, 4], dtype=np.float32)
        >>> [learner.update({w: gradient}, 4) for i in range(2)]
        [True, True]
        >>> w.value
        array([0.6875, 0.375 ], dtype=float32)
    """

def nesterov(
    parameters: Iterable[Parameter],
    lr: ScheduleLike,
    momentum: ScheduleLike,
    unit_gain: bool = True,
    l1_regularization_weight: float = 0.0,
    l2_regularization_weight: float = 0.0,
    gaussian_noise_injection_std_dev: ScheduleLike = 0.0,
    gradient_clipping_threshold_per_sample: float = ...,
    gradient_clipping_with_truncation: bool = True,
    use_mean_gradient: bool | None = None,
    minibatch_size: int | None = None,
    epoch_size: int | None = None,
) -> Learner:
    """Nesterov's accelerated gradient: ``s = gain * lr * g; v = momentum * v + s; w -= momentum * v + s``.

    Of a row-sparse gradient only the rows that are present move.

    Args:
        momentum: a number, a list or a schedule; of each minibatch, or of the number of samples its schedule refers to.
        unit_gain: True weighs the new gradient by ``1 - momentum``, so that the sum of all weights is 1; False by 1.
        l1_regularization_weight: per sample; parameters move towards 0 by it, times the learning rate, and stop there.
        l2_regularization_weight: per sample; multiples of the parameters that are added to the (clipped) gradient.
        gaussian_noise_injection_std_dev: standard deviation of the noise added to the parameters at each update: a number, a list or
            a schedule.
        gradient_clipping_threshold_per_sample: largest size of the elements, or of the norm, of a parameter's gradient per sample.
        gradient_clipping_with_truncation: True clips the elements, False scales each parameter's gradient to the norm.
        use_mean_gradient: legacy; True means ``minibatch_size=IGNORE``.
        minibatch_size: number of samples that learning rate and momentum refer to where their schedules do not say; ``IGNORE``: the
            gradient is the minibatch's mean.
        epoch_size: number of samples that each value of a list of learning rates or momenta is for; None for a sweep through the data.

    The other arguments, and the errors, are those of :func:`sgd`.

    Source: I. Sutskever, J. Martens, G. Dahl, G. Hinton: On the importance of initialization and momentum in deep learning, ICML 2013.

    Example:
        >>> w = C.parameter(2, init=1)
        >>> learner = C.nesterov([w], lr=0.5, momentum=0.5)
        >>> learner.update({w: np.array([2, 4], dtype=np.float32)}, 4)
        True
        >>> w.value
        array([0.8125, 0.625 ], dtype=float32)
    """

def rmsprop(
    parameters: Iterable[Parameter],
    lr: ScheduleLike,
    gamma: float,
    inc: float,
    dec: float,
    max: float,
    min: float,
    need_ave_multiplier: bool = True,
    l1_regularization_weight: float = 0.0,
    l2_regularization_weight: float = 0.0,
    gaussian_noise_injection_std_dev: ScheduleLike = 0.0,
    gradient_clipping_threshold_per_sample: float = ...,
    gradient_clipping_with_truncation: bool = True,
    use_mean_gradient: bool | None = None,
    minibatch_size: int | None = None,
    epoch_size: int | None = None,
) -> Learner:
    """RMSProp with a step size *s* for each weight that grows while the gradient keeps its sign.

    ``a = gamma * a + (1 - gamma) * g**2``, ``s = min(s * inc, max)`` where the sign is that of the update before and else
    ``s = max(s * dec, min)``, ``w -= lr / average * g * s / sqrt(a)``.  The step sizes start at 0.02.

    Args:
        gamma: decay of the mean square, at each update.
        inc, dec: factors of a step size that grows, and shrinks.
        max, min: bounds of a step size that grows, and shrinks; *max* may be infinite.
        need_ave_multiplier: True divides by the *average* of ``s / sqrt(a)`` over the parameter; False does not.
        l1_regularization_weight: per sample; parameters move towards 0 by it, times the learning rate, and stop there.
        l2_regularization_weight: per sample; multiples of the parameters that are added to the (clipped) gradient.
        gaussian_noise_injection_std_dev: standard deviation of the noise added to the parameters at each update: a number, a list or
            a schedule.
        gradient_clipping_threshold_per_sample: largest size of the elements, or of the norm, of a parameter's gradient per sample.
        gradient_clipping_with_truncation: True clips the elements, False scales each parameter's gradient to the norm.
        use_mean_gradient: legacy; True means ``minibatch_size=IGNORE``.
        minibatch_size: number of samples that learning rate and momentum refer to where their schedules do not say; ``IGNORE``: the
            gradient is the minibatch's mean.
        epoch_size: number of samples that each value of a list of learning rates or momenta is for; None for a sweep through the data.

    The other arguments, and the errors, are those of :func:`sgd`.

    Source: T. Tieleman, G. Hinton: Lecture 6.5 - rmsprop, COURSERA: Neural Networks for Machine Learning, 2012.

    Example:
        >>> w = C.parameter(2, init=1)
        >>> learner = C.rmsprop([w], lr=0.5, gamma=0.9, inc=1.2, dec=0.5, max=10, min=1e-8)
        >>> learner.update({w: np.array([2, 2], dtype=np.float32)}, 4)
        True
        >>> w.value
        array([0.75, 0.75], dtype=float32)
    """

def sgd(
    parameters: Iterable[Parameter],
    lr: ScheduleLike,
    l1_regularization_weight: float = 0.0,
    l2_regularization_weight: float = 0.0,
    gaussian_noise_injection_std_dev: ScheduleLike = 0.0,
    gradient_clipping_threshold_per_sample: float = ...,
    gradient_clipping_with_truncation: bool = True,
    use_mean_gradient: bool | None = None,
    minibatch_size: int | None = None,
    epoch_size: int | None = None,
) -> Learner:
    """Stochastic gradient descent: ``w -= lr * g``.

    The gradient *g* is summed over the minibatch, and *lr* is divided by the number of samples it refers to.

    Args:
        parameters: the parameters to update.
        lr: learning rate: a number, a list of numbers (see *epoch_size*) or a schedule.
        l1_regularization_weight: per sample; parameters move towards 0 by it, times the learning rate, and stop there.
        l2_regularization_weight: per sample; multiples of the parameters that are added to the (clipped) gradient.
        gaussian_noise_injection_std_dev: standard deviation of the noise added to the parameters at each update: a number, a list or
            a schedule.
        gradient_clipping_threshold_per_sample: largest size of the elements, or of the norm, of a parameter's gradient per sample.
        gradient_clipping_with_truncation: True clips the elements, False scales each parameter's gradient to the norm.
        use_mean_gradient: legacy; True means ``minibatch_size=IGNORE``.
        minibatch_size: number of samples that learning rate and momentum refer to where their schedules do not say; ``IGNORE``: the
            gradient is the minibatch's mean.
        epoch_size: number of samples that each value of a list of learning rates or momenta is for; None for a sweep through the data.

    Returns:
        The learner, for a :class:`~cntk.train.trainer.Trainer`.

    Raises:
        ValueError: *parameters* is empty, repeats one or has one of unknown shape; or an option is out of range.

    Example:
        >>> w = C.parameter(2, init=1)
        >>> learner = C.sgd([w], lr=0.5)
        >>> learner.update({w: np.array([2, 4], dtype=np.float32)}, 4)
        True
        >>> w.value
        array([0.75, 0.5 ], dtype=float32)
    """

__all__ = [
    "adadelta",
    "adagrad",
    "adam",
    "fsadagrad",
    "momentum_sgd",
    "nesterov",
    "rmsprop",
    "sgd",
    "universal",
]

"""Wrong arguments: public functions are called with values that no argument should have, and must say which one is wrong."""

from __future__ import annotations

import inspect
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

import cntk as C
from cntk import layers as L
from cntk.core.extension import plugins
from cntk.testing.samples import Trial, repetition_is_meant

SECONDS = 3
"""How long a call may take; it takes milliseconds, but where other programs have the processor."""

ALLOWED = (ValueError, TypeError, RuntimeError, NotImplementedError, OSError)
MEMORY = 4

WRONG: dict[str, Callable[[], Any]] = {
    "inf": lambda: float("inf"),
    "-inf": lambda: -float("inf"),
    "nan": lambda: float("nan"),
    "-1": lambda: -1,
    "2.5": lambda: 2.5,
    "2**63": lambda: 2**63,
    "2**64": lambda: 2**64,
    "10**400": lambda: 10**400,
    "1j": lambda: 1j,
    "True": lambda: True,
    "None": lambda: None,
    "''": lambda: "",
    "'x'": lambda: "x",
    "a surrogate": lambda: "\udc80",
    "b'x'": lambda: b"x",
    "[]": list,
    "()": tuple,
    "{}": dict,
    "a set": lambda: {1, 2},
    "a generator": lambda: (i for i in range(3)),
    "an object": object,
    "a class": lambda: int,
    "a Python function": lambda: lambda: 3,
    "a variable": lambda: C.input_variable((2, 3)),
    "a placeholder": C.placeholder,
    "a function": lambda: C.input_variable(3) * 2,
    "a parameter": lambda: C.parameter(3),
    "a schedule": lambda: C.learning_parameter_schedule(0.1),
    "an array of objects": lambda: np.array([None, "a"], object),
    "a matrix": lambda: np.ones((2, 2)),
    "a date": lambda: np.datetime64("2020-01-01"),
    "a huge shape": lambda: (10**9, 10**9),
    "a negative shape": lambda: (-5, 2),
}

Call = tuple[Callable[..., Any], dict[str, Any]]
"""A function, and arguments with which it may be called."""


def of_images() -> Any:
    return C.input_variable((3, 6, 6))


def calls() -> dict[str, Callable[[], Call]]:
    """Right calls of public functions, built again each time."""
    found: dict[str, Callable[[], Call]] = {name: partial(call_of_operator, name) for name in plugins.ops if operands_come_first(name)}
    x, window = {"filter_shape": (3, 3), "strides": 1, "pad": False, "name": ""}, {"name": "", "seed": 1, "dtype": np.float32}
    options = {"l1_regularization_weight": 0.0, "l2_regularization_weight": 0.0, "gradient_clipping_threshold_per_sample": 1.0}
    options |= {"gaussian_noise_injection_std_dev": 0.0, "gradient_clipping_with_truncation": True, "minibatch_size": None}
    sizes = {"init": C.glorot_uniform(), "name": ""}
    tables: dict[str, tuple[Any, dict[str, Any]]] = {
        "Dense": (L.Dense, {"shape": 4, "input_rank": None, "map_rank": None, "bias": True, "init_bias": 0, **sizes}),
        "Embedding": (L.Embedding, {"shape": 4, **sizes}),
        "Convolution": (L.Convolution, {"num_filters": 2, "sharing": True, "dilation": 1, "groups": 1, "reduction_rank": 1, **x}),
        "Convolution2D": (L.Convolution2D, {"num_filters": 2, "dilation": 1, "groups": 1, **x}),
        "ConvolutionTranspose": (L.ConvolutionTranspose, {"num_filters": 2, "output_shape": None, "dilation": 1, **x}),
        "MaxPooling": (L.MaxPooling, x),
        "AveragePooling": (L.AveragePooling, x),
        "BatchNormalization": (L.BatchNormalization, {"map_rank": None, "init_scale": 1, "blend_time_constant": 0, "name": ""}),
        "LayerNormalization": (L.LayerNormalization, {"initial_scale": 1, "initial_bias": 0, "name": ""}),
        "Dropout": (L.Dropout, {"dropout_rate": 0.5, "seed": 1, "name": ""}),
        "Stabilizer": (L.Stabilizer, {"steepness": 4, "name": ""}),
        "Label": (L.Label, {"name": "x"}),
        "Delay": (L.Delay, {"T": 1, "name": ""}),
        "PastValueWindow": (L.PastValueWindow, {"window_size": 2, "axis": 0, "name": ""}),
        "LSTM": (L.LSTM, {"shape": 4, "cell_shape": None, **sizes}),
        "GRU": (L.GRU, {"shape": 4, "cell_shape": None, **sizes}),
        "RNNStep": (L.RNNStep, {"shape": 4, "cell_shape": None, **sizes}),
        "Recurrence": (L.Recurrence, {"step_function": L.GRU(3), "return_full_state": False, "name": ""}),
        "Fold": (L.Fold, {"folder_function": L.GRU(3), "return_full_state": False, "name": ""}),
        "Sequential": (L.Sequential, {"layers": [L.Dense(3)], "name": ""}),
        "AttentionModel": (L.AttentionModel, {"attention_dim": 3, "name": ""}),
        "glorot_uniform": (C.glorot_uniform, {"scale": 1, "output_rank": 1, "filter_rank": 0, "seed": 1}),
        "normal": (C.normal, {"scale": 1, "output_rank": 1, "filter_rank": 0, "seed": 1}),
        "truncated_normal": (C.truncated_normal, {"stdev": 1, "seed": 1}),
        "bilinear": (C.bilinear, {"kernel_width": 3, "kernel_height": 3}),
        "input_variable": (C.input_variable, {"shape": 3, "dtype": np.float32, "needs_gradient": False, "name": ""}),
        "sequence.input_variable": (C.sequence.input_variable, {"shape": 3, "dtype": np.float32, "is_sparse": False, "name": ""}),
        "placeholder": (C.placeholder, {"shape": 3, "name": ""}),
        "parameter": (C.parameter, {"shape": 3, "init": 0, "dtype": np.float32, "device": None, "name": ""}),
        "constant": (C.constant, {"value": 0, "shape": 3, "dtype": np.float32, "device": None, "name": ""}),
        "random.uniform": (C.random.uniform, {"shape": (2,), "low": 0, "high": 1, **window}),
        "random.normal": (C.random.normal, {"shape": (2,), "mean": 0, "scale": 1, **window}),
        "random.bernoulli": (C.random.bernoulli, {"shape": (2,), "mean": 0.5, **window}),
        "random.gumbel": (C.random.gumbel, {"shape": (2,), "loc": 0, "scale": 1, **window}),
        "sgd": (C.sgd, {"parameters": [C.parameter(3)], "lr": 0.1, **options}),
        "adam": (C.adam, {"parameters": [C.parameter(3)], "lr": 0.1, "momentum": 0.9, "variance_momentum": 0.9, "epsilon": 1e-8}),
        "momentum_sgd": (C.momentum_sgd, {"parameters": [C.parameter(3)], "lr": 0.1, "momentum": 0.9, "unit_gain": True}),
        "rmsprop": (C.rmsprop, {"parameters": [C.parameter(3)], "lr": 0.1, "gamma": 0.9, "inc": 1.2, "dec": 0.7, "max": 2, "min": 0.1}),
        "adadelta": (C.adadelta, {"parameters": [C.parameter(3)], "lr": 0.1, "rho": 0.9, "epsilon": 1e-8}),
        "learning_parameter_schedule": (C.learning_parameter_schedule, {"schedule": [0.1, 0.2], "minibatch_size": 1, "epoch_size": 1}),
        "momentum_schedule": (C.momentum_schedule, {"momentum": [0.1, 0.2], "minibatch_size": 1, "epoch_size": 1}),
        "CTFDeserializer": (C.io.CTFDeserializer, {"filename": "file", "streams": C.io.StreamDefs(a=C.io.StreamDef("a", 2))}),
        "MinibatchSourceFromData": (C.io.MinibatchSourceFromData, {"data_streams": {"x": np.ones((2, 2), np.float32)}, "max_samples": 4}),
        "scale": (C.io.transforms.scale, {"width": 3, "height": 3, "channels": 3, "interpolations": "linear", "pad_value": -1}),
        "crop": (C.io.transforms.crop, {"crop_type": "center", "crop_size": 3, "jitter_type": "none"}),
        "color": (C.io.transforms.color, {"brightness_radius": 0.0, "contrast_radius": 0.0, "saturation_radius": 0.0}),
        "Value.one_hot": (C.Value.one_hot, {"batch": [1, 2], "num_classes": 3, "dtype": np.float32}),
        "batch_normalization": (C.batch_normalization, {**batch_normalization(), "spatial": False, "epsilon": 1e-5, "name": ""}),
        "crop_manual": (C.crop_manual, {"node_input": of_images(), "node_referent": of_images(), "offset_x": 0, "offset_y": 0}),
        "random_sample": (C.random_sample, {"weights": [0.5, 0.5], "num_samples": 2, "allow_duplicates": True, "seed": 1}),
        "CheckpointConfig": (C.CheckpointConfig, {"filename": "file", "frequency": 1, "restore": True, "preserve_all": False}),
    }
    return found | {name: partial(lambda call: (call[0], dict(call[1])), call) for name, call in tables.items()}


def batch_normalization() -> dict[str, Any]:
    ones, zeros = (C.constant(value, shape=3) for value in (1, 0))
    running = {"running_mean": zeros, "running_inv_std": ones, "running_count": C.constant(0)}
    return {"operand": C.input_variable(3), "scale": ones, "bias": zeros, **running}


def operands_come_first(name: str) -> bool:
    """Whether an operator has a sample whose call is its operands and attributes."""
    samples = getattr(plugins.ops.get(name), "samples", ())
    return bool(samples) and samples[0].call is None


def call_of_operator(name: str) -> Call:
    """The call of an operator's first sample."""
    function = plugins.ops.get(name)
    made = Trial(function, function.samples[0], np.float32)
    bound = inspect.signature(function).bind(*made.variables, **function.samples[0].attributes)
    bound.apply_defaults()
    return function, dict(bound.arguments)


def complaint(name: str, function: Callable[..., Any], arguments: dict[str, Any]) -> str | None:
    """Call the function; tell what is wrong with what it does, None if it gives a result or an error as it should be."""
    signature = inspect.signature(function)
    bound = inspect.BoundArguments(signature, arguments)  # type: ignore[arg-type]
    try:
        with at_most(SECONDS), warnings.catch_warnings(), repetition_is_meant():
            warnings.simplefilter("ignore")
            function(*bound.args, **bound.kwargs)
    except ALLOWED as error:
        if type(error).__module__.startswith("numpy"):
            return f"an error of NumPy's, {type(error).__name__}: {error}"
        return None if plain(name.split(".")[-1]) in plain(str(error)) else f"the error does not name {name}: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def plain(text: str) -> str:
    """Letters and digits alone, by which `reduce_sum` is also found in `ReduceSum`."""
    return "".join(letter for letter in text.lower() if letter.isalnum())


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise an error in what takes longer."""

    def end(*_: Any) -> None:
        raise InterruptedError(f"it has not ended after {seconds} seconds")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def trial(random: np.random.Generator) -> str:
    """One function with one to three wrong arguments."""
    known = calls()
    name = str(random.choice(sorted(known)))
    function, arguments = known[name]()
    wrong = {}
    for argument in random.choice(sorted(arguments), min(len(arguments), int(random.integers(1, 4))), replace=False):
        wrong[str(argument)] = str(random.choice(list(WRONG)))
    repeated = {p.name for p in inspect.signature(function).parameters.values() if p.kind is p.VAR_POSITIONAL}
    changed = {argument: (WRONG[what](),) if argument in repeated else WRONG[what]() for argument, what in wrong.items()}
    found = complaint(name, function, {**arguments, **changed})
    assert found is None, f"{name} with {wrong}: {found}"
    return "refused or taken"

"""Saves the zoo's models, and loads what another program has saved: ``python trial.py save|check|check_with_data FOLDER [NAME ...]``.

Runs on CNTK 2.7 with Python 3.6 as well as here.  A saved model is two files: ``NAME.model``, and ``NAME.npz`` with the values it
computes, by output and sample, and the names and uids of its parameters.
"""

import os
import sys
import traceback

import numpy as np
from scipy.sparse import csr_matrix
from zoo import MODELS

import cntk as C
from cntk.misc import convert_optimized_rnnstack

RELATIVE, ABSOLUTE = 1e-5, 1e-6


def save(folder, name):
    """Build a model of the zoo, and save it with what it computes."""
    C.cntk_py.set_fixed_random_seed(1)
    function, data = MODELS[name]()
    path = os.path.join(folder, name + ".model")
    function.save(path)
    np.savez_compressed(os.path.join(folder, name + ".npz"), **record(C.load_model(path), data))


def record(function, data):
    """What is to be the same: values, and names and uids of parameters."""
    kept = {"parameters": np.array([[p.name, p.uid] for p in function.parameters], dtype=np.str_)}
    try:
        found = values(function, data)
    except (RuntimeError, ValueError) as error:
        if not any(reason in str(error) for reason in ON_GPU_ONLY):
            raise
        found = values(convert_optimized_rnnstack(function), data) if "RNNForward" in str(error) else []
    for number, samples in enumerate(found):
        kept.update({f"{number}.{k}": value for k, value in enumerate(samples)})
    return kept


ON_GPU_ONLY = ("half", "float16", "Float16", "OptimizedRNNStack", "RNNForward", "Dilated convolution on CPU")


def values(function, data):
    """Of each output the arrays of its samples; one array where it has no dynamic axes."""
    for placeholder in function.placeholders:
        function = function.replace_placeholders({placeholder: filled(placeholder.name, data)})
    found = function.eval({argument: data[argument.name] for argument in function.arguments})
    by_output = [found[output] for output in function.outputs] if isinstance(found, dict) else [found]
    return [samples(value, function.outputs[k]) for k, value in enumerate(by_output)]


def filled(name, data):
    """What stands for a placeholder: a number, or a sequence where there are data for it."""
    return C.sequence.input_variable(data[name][0].shape[1:], name=name) if name in data else C.constant(1.5)


def samples(value, output):
    if not output.dynamic_axes:
        return [dense(value)]
    return [dense(part) for part in value]


def dense(value):
    value = value.asarray() if hasattr(value, "asarray") else value
    return value.toarray() if hasattr(value, "toarray") else np.asarray(value)


def check(folder, name):
    """Load a model of the zoo that has been saved, and compare; returns the greatest difference relative to what is allowed.

    Raises:
        ValueError: something is not the same.
    """
    with np.load(os.path.join(folder, name + ".npz")) as file:
        right = dict(file)
    function, data = C.load_model(os.path.join(folder, name + ".model")), MODELS[name]()[1]
    mine = record(function, data)
    if (mine["parameters"] != right["parameters"]).any():
        raise ValueError("parameters: expected {}, found {}".format(right["parameters"].tolist(), mine["parameters"].tolist()))
    compared = sorted(set(mine) & set(right) - {"parameters"})
    if set(mine) != set(right) and compared:
        raise ValueError(f"values: expected {sorted(right)}, found {sorted(mine)}")
    return max([difference(mine[key], right[key], key) for key in compared], default=None)


def difference(mine, right, key):
    """Greatest difference as a multiple of what is allowed."""
    if mine.shape != right.shape:
        raise ValueError(f"value {key}: expected shape {right.shape}, found {mine.shape}")
    mine, right = mine.astype(np.float64), right.astype(np.float64)
    same = (mine == right) | (np.isnan(mine) & np.isnan(right))
    with np.errstate(invalid="ignore"):
        off = np.where(same, 0, np.abs(mine - right) / (RELATIVE * np.abs(right) + ABSOLUTE))
    if not (off <= 1).all():
        raise ValueError(f"value {key}: expected {right.ravel()[:8].tolist()}, found {mine.ravel()[:8].tolist()}")
    return float(off.max()) if off.size else 0.0


def check_with_data(folder, name):
    """Load a model that was saved together with data for its inputs, by their uids, and compare."""
    with np.load(os.path.join(folder, name + ".npz")) as file:
        kept = dict(file)
    function = C.load_model(os.path.join(folder, name + ".model"))
    feed = {}
    for argument in function.arguments:
        whole, parts = kept.get("in " + argument.uid), []
        while f"in {argument.uid} {len(parts)}" in kept:
            parts.append(kept[f"in {argument.uid} {len(parts)}"])
        feed[argument] = [csr_matrix(part) for part in parts] if argument.is_sparse else parts or whole
    found = function.eval(feed)
    by_output = [found[output] for output in function.outputs] if isinstance(found, dict) else [found]
    off = 0
    for number, value in enumerate(by_output):
        for k, part in enumerate(samples(value, function.outputs[number])):
            off = max(off, difference(part, kept[f"out {number} {k}"], f"{number}.{k}"))
    return off


def main():
    """Print a line for each model: its name, and ``ok``, how far it is off, or what went wrong."""
    what, folder, chosen = sys.argv[1], sys.argv[2], sys.argv[3:]
    there = sorted(name[:-4] for name in os.listdir(folder) if name.endswith(".npz"))
    for name in chosen or (there if what == "check_with_data" else sorted(MODELS)):
        if what == "check" and name not in there:
            print(name, "missing", sep="\t", flush=True)
            continue
        try:
            off = {"save": save, "check": check, "check_with_data": check_with_data}[what](folder, name)
            print(name, "ok" if off is None else f"{off:.2g}", sep="\t", flush=True)
        except Exception as error:
            if os.environ.get("TRACEBACK"):
                traceback.print_exc()
            print(name, "{}: {}".format(type(error).__name__, " ".join(str(error).split())[:300]), sep="\t", flush=True)


if __name__ == "__main__":
    main()

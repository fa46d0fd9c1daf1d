"""A predictor beside a plain loop over ``eval``: rows a second, and the ratio of times."""

import time

import numpy as np

import cntk as C

ROWS, BATCH = 20_000, 256


def models():
    random = np.random.default_rng(0)
    x = C.input_variable(784, name="x")
    mlp = C.layers.Sequential([C.layers.Dense(200, activation=C.relu), C.layers.Dense(10, name="z")])(x)
    yield "dense network, 784-200-10", mlp, random.random((ROWS, 784), dtype=np.float32)
    narrow = C.input_variable(8, name="x")
    yield "dense layer, 8-2", C.layers.Dense(2, name="z")(narrow), random.random((ROWS, 8), dtype=np.float32)
    s = C.sequence.input_variable(20, name="x")
    lstm = C.layers.Sequential([C.layers.Recurrence(C.layers.LSTM(64)), C.layers.Dense(10, name="z")])(s)
    yield "LSTM, 20-64-10", lstm, [random.random((n, 20), dtype=np.float32) for n in random.integers(5, 30, ROWS // 10)]


def loop(model, data):
    """What a program does without a predictor."""
    parts = [model.eval(data[start : start + BATCH]) for start in range(0, len(data), BATCH)]
    return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else [steps for part in parts for steps in part]


def tables(data):
    """The data as tables of the libraries that are installed."""
    columns = {"x": data if isinstance(data, list) else list(data)}
    try:
        import pandas

        yield "pandas", pandas.DataFrame(columns)
    except ImportError:
        pass
    try:
        import pyarrow

        nested = [steps.tolist() for steps in data] if isinstance(data, list) else None
        flat = pyarrow.array(nested) if nested else pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(data.ravel()), data.shape[1])
        yield "Arrow", pyarrow.table({"x": flat})
    except ImportError:
        pass


def seconds(call, times=5):
    found = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        found.append(time.perf_counter() - began)
    return min(found)


def main():
    for title, model, data in models():
        predictor = C.eval.Predictor(model, batch_rows=BATCH)
        plain = seconds(lambda model=model, data=data: loop(model, data))
        print(f"{title}: {len(data) / plain:,.0f} rows/s by eval")
        for kind, given in [("arrays", data), *tables(data)]:
            took = seconds(lambda predictor=predictor, given=given: predictor(given))
            print(f"    {kind}: {len(data) / took:,.0f} rows/s, {took / plain:.2f} times as long")


if __name__ == "__main__":
    main()

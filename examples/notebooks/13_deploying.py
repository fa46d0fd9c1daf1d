# %% [markdown]
# # 13 Deploying a model
#
# You will learn
#
# * how to make a network ready for use: one that gives probabilities, with names for its input and output,
# * `Predictor`, which applies a model to data as programs have it,
# * how to serve a model over HTTP with `cntk serve`, and to ask it,
# * how to hand it to other languages and machines as an ONNX file,
# * and that all three say the same.
#
# It takes `pip install 'opencntk[demo,serve,onnx]'`.

# %%
import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
from sklearn.datasets import load_digits

import cntk as C

C.cntk_py.set_fixed_random_seed(1)
folder = tempfile.TemporaryDirectory()

# %% [markdown]
# ## A network
#
# We train on scores, and deploy probabilities. What belongs to the use of the model belongs into it: here that pixels are numbers from 0 to
# 16, as those who will call it have them.

# %%
pixels, classes = load_digits(return_X_y=True)
pixels, labels = pixels.astype(np.float32), np.eye(10, dtype=np.float32)[classes]
test, training = np.split(np.random.default_rng(0).permutation(len(pixels)), [397])

x, y = C.input_variable(64, name="pixels"), C.input_variable(10)
scores = C.layers.Sequential([lambda v: v / 16, C.layers.Dense(100, activation=C.relu), C.layers.Dense(10)])(x)
criterion = C.combine([C.cross_entropy_with_softmax(scores, y), C.classification_error(scores, y)])
learner = C.momentum_sgd(scores.parameters, C.learning_parameter_schedule(0.1), C.momentum_schedule(0.9))
criterion.train((pixels[training], labels[training]), minibatch_size=32, max_epochs=15, parameter_learners=[learner])
print(f"test error {criterion.test((pixels[test], labels[test])).metric:.2%}")

model = C.softmax(scores, name="probabilities")
path = Path(folder.name, "digits.dnn")
model.save(str(path))
print(path.name, f"{path.stat().st_size:,} bytes")

# %% [markdown]
# ## In a Python program: `Predictor`
#
# A predictor takes the path of a model and any number of rows: arrays, dictionaries, lists of records, tables of pandas, Polars and Arrow.
# It computes in chunks and returns what it was given.

# %%
predictor = C.eval.Predictor(str(path))
print(predictor.signature)

by_predictor = predictor(pixels[test])
print(type(by_predictor).__name__, by_predictor.shape)
records = predictor([{"pixels": row} for row in pixels[test][:2]])
print(*(f"a {record['probabilities'].argmax()} with {record['probabilities'].max():.1%}" for record in records), sep=", ")

# %% [markdown]
# What does not fit is refused, with what would:

# %%
try:
    predictor([{"image": pixels[0]}])
except ValueError as error:
    print(error)

# %% [markdown]
# ## As a service: `cntk serve`
#
# `cntk serve digits=digits.dnn` answers requests over HTTP by the Open Inference Protocol, as KServe and Triton do. We start it on a free
# port of this machine and wait until it is ready.

# %%
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
address = f"http://127.0.0.1:{port}/v2"
server = subprocess.Popen(
    [sys.executable, "-m", "cntk", "serve", f"digits={path}", "--port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
)


def ask(path, request=None):
    """The server's answer to a request."""
    data = None if request is None else json.dumps(request).encode()
    with urllib.request.urlopen(f"{address}/{path}", data, timeout=30) as answer:
        return json.loads(answer.read() or "{}")


for _ in range(600):
    try:
        ask("health/ready")
        break
    except OSError:
        time.sleep(0.1)
print(ask("models/digits"))

# %% [markdown]
# A request names the input, its shape and its type:

# %%
rows = pixels[test]
tensor = {"name": "pixels", "shape": list(rows.shape), "datatype": "FP32", "data": rows.ravel().tolist()}
answer = ask("models/digits/infer", {"inputs": [tensor]})
by_server = np.reshape(answer["outputs"][0]["data"], answer["outputs"][0]["shape"])
print(answer["outputs"][0]["name"], by_server.shape)

# %% [markdown]
# A wrong request is answered with what was expected, and an example:

# %%
try:
    ask("models/digits/infer", {"inputs": [{"name": "pixels", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}]})
except urllib.error.HTTPError as error:
    print(error.code, json.loads(error.read())["error"])

# %%
server.terminate()
print("the server ended with", server.wait(timeout=30))

# %% [markdown]
# ## Elsewhere: ONNX
#
# ONNX files run in C#, Java, C++, JavaScript and on phones. Here ONNX Runtime runs it, without this library:

# %%
onnx_path = Path(folder.name, "digits.onnx")
model.save(str(onnx_path), format="onnx")
session = onnxruntime.InferenceSession(str(onnx_path), providers=["CPUExecutionProvider"])
print([(value.name, value.shape) for value in session.get_inputs()], "->", [value.name for value in session.get_outputs()])
(by_onnx,) = session.run(None, {"pixels": pixels[test]})

# %% [markdown]
# ## All say the same
#
# The three differ by less than one part in 100,000:

# %%
for name, probabilities in (("server", by_server), ("ONNX Runtime", by_onnx)):
    print(f"{name}: differs from the predictor by {np.abs(probabilities - by_predictor).max():.1e} at most")
    np.testing.assert_allclose(probabilities, by_predictor, atol=1e-5)

# %% [markdown]
# The four test digits of which the model is least sure, and what each way of asking it says:

# %%
unsure = np.argsort(by_predictor.max(axis=1))[:4]
figure, axes = plt.subplots(2, 4, figsize=(11.5, 4.6), height_ratios=(1, 1.4), layout="constrained")
for (top, bottom), row in zip(axes.T, unsure, strict=True):
    top.imshow(pixels[test[row]].reshape(8, 8), cmap="gray_r")
    top.set(title=f"a {classes[test[row]]}", xticks=[], yticks=[])
    ways = (("Predictor", by_predictor), ("cntk serve", by_server), ("ONNX Runtime", by_onnx))
    for offset, (name, probabilities) in zip((-0.27, 0, 0.27), ways, strict=True):
        bottom.bar(np.arange(10) + offset, probabilities[row], width=0.27, label=name)
    bottom.set(xticks=range(10), ylim=(0, 0.6), xlabel="digit")
axes[1, 0].set_ylabel("probability")
axes[1, 2].legend(fontsize=8)
plt.show()

# %%
folder.cleanup()

# %% [markdown]
# ## What to try next
#
# * Open the server's page in a browser: it draws the model, counts requests, and has a form to try one.
# * Apply the model to a file: `cntk predict digits.dnn rows.csv`.
# * Put a second version beside the first while the server runs.
#
# In the docs: [applying models](../../docs/scoring.md), [serving](../../docs/serving.md), [ONNX](../../docs/onnx.md),
# [deploying](../../docs/deploying.md), [MLflow](../../docs/mlflow.md).

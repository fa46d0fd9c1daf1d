# %% [markdown]
# # 12 Training on several workers
#
# You will learn
#
# * the two changes that make a program train on several processes,
# * how to start them: `cntk launch`, or whatever your cluster has,
# * what data-parallel training, 1-bit gradients and block momentum do to what is learnt, and to what is sent.
#
# It takes scikit-learn, for its digits, and matplotlib: `pip install 'opencntk[demo]'`. Workers are processes of this machine here, which
# talk over sockets.

# %%
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

folder = tempfile.TemporaryDirectory()

# %% [markdown]
# ## The program
#
# Every worker runs the same program, so it is a file. Two things make it a distributed one:
#
# 1. the learner is wrapped, in this program by the strategy that the first argument names,
# 2. the source is asked for this worker's part of each minibatch.
#
# A minibatch is that of *all* workers: 64 samples are 32 for each of two. The trainer's loss is that of all workers, too, but for block
# momentum, where workers go their own ways between blocks; so the program notes the error on the test set instead.

# %%
PROGRAM = """
import json, sys
import numpy as np
from sklearn.datasets import load_digits
import cntk as C

strategy, path = sys.argv[1:]
C.cntk_py.set_fixed_random_seed(1)
rank, workers = C.Communicator.rank(), C.Communicator.num_workers()

pixels, classes = load_digits(return_X_y=True)
pixels, labels = (pixels / 16).astype(np.float32), np.eye(10, dtype=np.float32)[classes]
order = np.random.default_rng(0).permutation(len(pixels))
test, training = order[:397], order[397:]

x, y = C.input_variable(64), C.input_variable(10)
z = C.layers.Sequential([C.layers.Dense(200, activation=C.relu), C.layers.Dense(10)])(x)
loss, error = C.cross_entropy_with_softmax(z, y), C.classification_error(z, y)

learner = C.momentum_sgd(z.parameters, C.learning_parameter_schedule(0.5), C.momentum_schedule(0.9))
if strategy == "data parallel":
    learner = C.data_parallel_distributed_learner(learner)
elif strategy == "1 bit":
    learner = C.data_parallel_distributed_learner(learner, num_quantization_bits=1)
elif strategy == "block momentum":
    learner = C.block_momentum_distributed_learner(learner, block_size=320)
trainer = C.Trainer(z, (loss, error), [learner])

arrays = C.io.NumpyDeserializer({"pixels": pixels[training], "labels": labels[training]})
source = C.io.MinibatchSource(arrays, max_sweeps=12)
streams = {x: source.streams.pixels, y: source.streams.labels}
curve, more = [], True
while more:
    part = source.next_minibatch(64, streams, num_data_partitions=workers, partition_index=rank)
    more = trainer.train_minibatch(part)     # the same on all workers: True while any of them has samples
    seen = trainer.total_number_of_samples_seen
    if not curve or seen >= curve[-1][0] + 640:
        curve.append((seen, trainer.test_minibatch({x: pixels[test], y: labels[test]})))

digest = [float(np.abs(p.value).sum()) for p in z.parameters]
if rank == 0:
    json.dump({"workers": workers, "curve": curve, "digest": digest}, open(path, "w"))
C.Communicator.finalize()                    # waits until all have come here
"""
program = Path(folder.name, "train.py")
program.write_text(PROGRAM)

# %% [markdown]
# ## Starting it
#
# Started by itself the program is the only worker. `cntk launch -n 2 train.py` starts two; `torchrun`, `mpiexec`, Slurm, Kubernetes, Dask
# and Ray do, too.


# %%
def run(strategy, workers):
    """What the main worker reports of a run."""
    path = Path(folder.name, "report.json")
    launch = ["-m", "cntk", "launch", "-n", str(workers), "--with", "tcp"] if workers > 1 else []
    subprocess.run([sys.executable, *launch, str(program), strategy, str(path)], check=True)
    return json.loads(path.read_text())


runs = {
    "one worker": run("data parallel", 1),
    "two, data parallel": run("data parallel", 2),
    "two, 1-bit gradients": run("1 bit", 2),
    "two, block momentum": run("block momentum", 2),
}
for name, report in runs.items():
    print(f"{name}: {report['workers']} worker(s), test error {report['curve'][-1][1]:.2%}")

# %% [markdown]
# ## What is learnt
#
# Data-parallel workers add their gradients up before each update. That is the update of one worker on the whole minibatch, so the weights
# are the same up to rounding: their sums differ by less than one part in a thousand.

# %%
one, two = (np.array(runs[name]["digest"]) for name in ("one worker", "two, data parallel"))
print("sums of the absolute weights:", one.round(3), two.round(3))
np.testing.assert_allclose(two, one, rtol=1e-3)

# %% [markdown]
# The other strategies send less, and learn something slightly different. All end with fewer than one test digit in ten mistaken:

# %%
for report in runs.values():
    assert report["curve"][-1][1] < 0.1

# %% [markdown]
# ## What is sent
#
# Gradients of this small network have 15,000 numbers. Of each, data-parallel training sends four bytes; 1-bit gradients send a bit, and two
# numbers a column beside. What is rounded off is kept and added to the next gradient, which is why it learns. Block momentum sends the
# model once a block, here of 320 samples or five minibatches.

# %%
columns, numbers = 200 + 10 + 2, 64 * 200 + 200 + 200 * 10 + 10
sent = {
    "two, data parallel": 4 * numbers,
    "two, 1-bit gradients": numbers / 8 + 8 * columns,
    "two, block momentum": 4 * numbers / 5,
}
for name, size in sent.items():
    print(f"{name}: about {size / 1000:.1f} kB a worker and minibatch")

# %%
figure, (curve, bars) = plt.subplots(1, 2, figsize=(11.5, 4), width_ratios=(1.6, 1), layout="constrained")
colours = {
    "one worker": "lightgrey",
    "two, data parallel": "black",
    "two, 1-bit gradients": "tab:orange",
    "two, block momentum": "tab:blue",
}
for name, report in runs.items():
    style = {"linewidth": 5} if name == "one worker" else {"linewidth": 1.4, "linestyle": "--" if "parallel" in name else "-"}
    samples, errors = zip(*report["curve"], strict=True)
    curve.plot(samples, 100 * np.array(errors), color=colours[name], label=name, **style)
curve.set(xlabel="samples seen by all workers", ylabel="error on the test set (%)", yscale="log")
curve.set_yticks([2, 5, 10, 20, 50], ["2", "5", "10", "20", "50"])
curve.legend()
bars.barh(list(sent), [size / 1000 for size in sent.values()], color=[colours[name] for name in sent])
bars.invert_yaxis()
bars.set(xlabel="kB a worker and minibatch, computed")
plt.show()

# %%
folder.cleanup()

# %% [markdown]
# Two workers on one machine of two cores are no faster here: the network is so small that more time goes into exchanging than into
# computing. [Several workers](../../docs/distributed.md#how-many-workers-pay) tells from when on it pays.
#
# ## What to try next
#
# * Four workers, or blocks of 3,200 samples. When does block momentum begin to lose?
# * Kill one of the workers while they train, and see what the others say.
# * Let the workers save checkpoints and go on with another number of them.
# * Go on to notebook 13: deploying what was trained.
#
# In the docs: [several workers](../../docs/distributed.md), [parts of a source](../../docs/readers.md#several-workers-several-files).

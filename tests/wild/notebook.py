# coding: utf-8
# A notebook, saved as a script.

# # Classifying noisy rings
#
# In this notebook we look at the data, train a small network, watch its loss, and look at what it gets wrong.

# In[1]:

from __future__ import print_function  # python 2/3
import os
import sys
import math
import time
import glob
import numpy as np
import cntk as C
from cntk import *
from cntk.layers import *
from cntk.logging import *
from cntk.train import *
from cntk.device import *

try:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
except ImportError:  # the cells that draw are left out
    plt = None

try:
    get_ipython().run_line_magic("matplotlib", "inline")
except NameError:
    pass

# In[2]:

# Select the right target device when this notebook is being tested:
if "TEST_DEVICE" in os.environ:
    if os.environ["TEST_DEVICE"] == "cpu":
        C.device.try_set_default_device(C.device.cpu())
    else:
        C.device.try_set_default_device(C.device.gpu(0))

if not C.__version__ == "2.7":
    raise Exception("this notebook was designed to work with 2.7. Current Version: " + C.__version__)

np.random.seed(0)
C.cntk_py.set_fixed_random_seed(1)
C.cntk_py.force_deterministic_algorithms()
isFast = True
C.cntk_py.set_computation_network_trace_level(0)
C.logging.set_trace_level(C.logging.TraceLevel.Warning)

# ## Data
# In[3]:

input_dim = 2
num_output_classes = 3


def generate_random_data_sample(sample_size, feature_dim, num_classes):
    Y = np.random.randint(size=(sample_size, 1), low=0, high=num_classes)
    angle = np.random.uniform(0, 2 * np.pi, size=(sample_size, 1))
    radius = Y + 1 + 0.2 * np.random.randn(sample_size, 1)
    X = np.hstack([radius * np.cos(angle), radius * np.sin(angle)]).astype(np.float32)
    class_ind = [Y == class_number for class_number in range(num_classes)]
    Y = np.asarray(np.hstack(class_ind), dtype=np.float32)
    return X, Y


features, labels = generate_random_data_sample(64, input_dim, num_output_classes)
print(features.shape, labels.shape, labels.sum(axis=0))

# In[4]:

colors = ["r" if label[0] == 1 else "b" if label[1] == 1 else "g" for label in labels]
if plt is not None:
    plt.scatter(features[:, 0], features[:, 1], c=colors)
    plt.xlabel("x")
    plt.ylabel("y")
    plt.savefig("data.png")
    plt.close()

# ## Model
# In[5]:

num_hidden_layers = 2
hidden_layers_dim = 20

input = C.input_variable(input_dim, name="features")
label = C.input_variable(num_output_classes, name="label")


def create_model(features):
    with C.layers.default_options(init=C.layers.glorot_uniform(seed=1), activation=C.ops.relu):
        h = features
        for _ in range(num_hidden_layers):
            h = C.layers.Dense(hidden_layers_dim)(h)
        return C.layers.Dense(num_output_classes, activation=None, name="classify")(h)


z = create_model(input)
print("The model has the shape", z.shape, "and", len(z.parameters), "parameters")
log_number_of_parameters(z)
print()
print(z.classify.b.value.tolist(), z.classify.W.shape)

# In[6]:

loss = C.cross_entropy_with_softmax(z, label)
eval_error = C.classification_error(z, label)
learning_rate = 0.5
lr_schedule = C.learning_rate_schedule(learning_rate, C.UnitType.minibatch)
learner = C.sgd(z.parameters, lr_schedule)
tensorboard = TensorBoardProgressWriter(freq=5, log_dir="log", model=z)
printer = ProgressPrinter(freq=10, first=0, tag="Training", num_epochs=1)
trainer = C.Trainer(z, (loss, eval_error), [learner], [printer, tensorboard])


# ## Training
# In[7]:


def moving_average(a, w=5):
    if len(a) < w:
        return a[:]
    return [val if idx < w else sum(a[(idx - w) : idx]) / w for idx, val in enumerate(a)]


def print_training_progress(trainer, mb, frequency, verbose=1):
    training_loss, eval_error = "NA", "NA"
    if mb % frequency == 0:
        training_loss = trainer.previous_minibatch_loss_average
        eval_error = trainer.previous_minibatch_evaluation_average
        if verbose:
            print("Minibatch: {0}, Loss: {1:.3f}, Error: {2:.2f}".format(mb, training_loss, eval_error))
    return mb, training_loss, eval_error


minibatch_size = 32
num_minibatches_to_train = 40
plotdata = {"batchsize": [], "loss": [], "error": []}

for i in range(0, num_minibatches_to_train):
    features, labels = generate_random_data_sample(minibatch_size, input_dim, num_output_classes)
    trainer.train_minibatch({input: features, label: labels})
    batchsize, l, error = print_training_progress(trainer, i, 10, verbose=1)
    if not (l == "NA" or error == "NA"):
        plotdata["batchsize"].append(batchsize)
        plotdata["loss"].append(l)
        plotdata["error"].append(error)
trainer.summarize_training_progress()
tensorboard.write_value("rings/minibatches", num_minibatches_to_train, 0)
for p in z.parameters:
    tensorboard.write_value(p.uid + "/mean", float(reduce_mean(p).eval()), 0)
tensorboard.flush()
print("events", len(glob.glob("log/*tfevents*")))

# In[8]:

plotdata["avgloss"] = moving_average(plotdata["loss"])
plotdata["avgerror"] = moving_average(plotdata["error"])
if plt is not None:
    plt.figure(1)
    plt.subplot(211)
    plt.plot(plotdata["batchsize"], plotdata["avgloss"], "b--")
    plt.subplot(212)
    plt.plot(plotdata["batchsize"], plotdata["avgerror"], "r--")
    plt.savefig("loss.png")
    plt.close()
print(["%.3f" % v for v in plotdata["avgloss"]])

# ## Evaluation
# In[9]:

test_minibatch_size = 48
features, labels = generate_random_data_sample(test_minibatch_size, input_dim, num_output_classes)
print("test error %.4f" % trainer.test_minibatch({input: features, label: labels}))
trainer.summarize_test_progress()
tensorboard.close()

# In[10]:

out = C.softmax(z)
result = out.eval({input: features})
predicted = [int(np.argmax(row)) for row in result]
actual = [int(np.argmax(row)) for row in labels]


def confusion_matrix(actual, predicted, classes):
    matrix = np.zeros((classes, classes), dtype=int)
    for a, p in zip(actual, predicted):
        matrix[a, p] += 1
    return matrix


confusion = confusion_matrix(actual, predicted, num_output_classes)
print("Label    :", actual[:20])
print("Predicted:", predicted[:20])
print(confusion)
print("accuracy %.4f" % (np.trace(confusion) / float(confusion.sum())))
if plt is not None:
    plt.imshow(confusion)
    plt.savefig("confusion.png")
    plt.close()

# ## The same with `train()` and callbacks
# In[11]:

X, Y = generate_random_data_sample(320, input_dim, num_output_classes)
z2 = Sequential([Dense(12, activation=tanh, init=glorot_uniform(seed=5)), Dense(num_output_classes, init=glorot_uniform(seed=6))])(input)


crit = C.combine([C.cross_entropy_with_softmax(z2, label), C.classification_error(z2, label)])
told = []
callback = ProgressPrinter(log_to_file="train.log", tag="Log", num_epochs=3)
checkpoint = CheckpointConfig(filename="rings.ckp", frequency=(1, DataUnit.sweep), restore=False)
test_config = TestConfig((X[:60], Y[:60]), minibatch_size=20, criterion=crit)
stopped = []
cv = CrossValidationConfig(
    (X[60:120], Y[60:120]),
    minibatch_size=20,
    frequency=(1, DataUnit.sweep),
    criterion=crit,
    callback=lambda index, average_error, num_samples, num_minibatches: stopped.append((index, num_samples)) or True,
)
progress = crit.train(
    (X, Y),
    minibatch_size=40,
    max_epochs=3,
    model_inputs_to_streams=None,
    parameter_learners=[
        C.momentum_sgd(z2.parameters, C.learning_parameter_schedule([0.2, 0.1, 0.05], epoch_size=320), C.momentum_schedule(0.9))
    ],
    callbacks=[callback, checkpoint, test_config, cv],
)
print([(s.samples, "%.3f" % s.loss, "%.2f" % s.metric) for s in progress.epoch_summaries])
print(len(progress.updates), stopped, "test %.3f" % progress.test_summary.metric, progress.test_summary.samples)
print(sorted(os.path.basename(p) for p in glob.glob("rings.ckp*")))
log = open("train.log0" if os.path.exists("train.log0") else "train.log").read() if glob.glob("train.log*") else ""
print(len([line for line in log.splitlines() if "Finished Epoch" in line]), "epochs in the log")

# In[12]:

test = crit.test((X[:100], Y[:100]), minibatch_size=50)
print("test", test.samples, "%.3f" % test.metric)
evaluator = C.Evaluator(crit.outputs[1])
print("evaluator %.3f" % evaluator.test_minibatch({input: X[:50], label: Y[:50]}))
print("graph", len(C.logging.plot(z2)) > 30, [n.name for n in C.logging.get_node_outputs(z) if n.name])

# In[13]:

# per class: mean probability, by gradients the input that the network looks at most
probabilities = C.softmax(z2).eval({input: X})
for k in range(num_output_classes):
    rows = probabilities[Y[:, k] == 1]
    print("class %d: %d samples, %.2f" % (k, len(rows), rows[:, k].mean()))
x_grad = C.input_variable(input_dim, needs_gradient=True)
score = C.reduce_max(z2.clone(C.CloneMethod.share, {input: x_grad}))
sensitivity = np.abs(score.grad({x_grad: X[:50]})).mean(axis=0)
print("sensitivity", ["%.1f" % v for v in sensitivity])
z2.save("rings.dnn")
print("saved", os.path.exists("rings.dnn"), np.array_equal(Function.load("rings.dnn")(X[:4]), z2(X[:4])))

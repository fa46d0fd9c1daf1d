"""Calls of the public names as users write them, for type checkers: a comment says which lines they must refuse, or the type they must find.

``# error`` marks a line that is wrong, ``# gives T`` one whose value is of type *T*.  The file is never run.
"""

import cntk as C
import numpy as np
from cntk.layers import GRU, LSTM, Dense, Recurrence, Sequential

x = C.input_variable(2)  # gives Input
y = C.input_variable(shape=(2,), dtype=np.float32, needs_gradient=True, is_sparse=False, name="y")
words = C.sequence.input_variable(5, is_sparse=True)
image = C.input_variable((3, 32, 32))
W = C.Parameter((2, 3), init=C.glorot_uniform())
b = C.parameter(3, init=0, name="b")
two = C.constant(2)
rows = np.zeros((4, 2), np.float32)

# ---- operators, one by one ----

C.relu(x)  # gives Function
C.tanh(x, name="h")
C.sigmoid(C.relu(x))
C.exp(1)
C.log([1.0, 2.0])
C.sqrt(rows)
C.square(np.float32(2))
C.abs(x=x)
C.negate(x)
C.reciprocal(x)
C.floor(x), C.ceil(x), C.round(x)
C.sin(x), C.cos(x), C.tan(x), C.sinh(x), C.cosh(x)
C.leaky_relu(x, alpha=0.1)
C.elu(x, 0.5)
C.selu(x)
C.softplus(x, steepness=2)
C.hard_sigmoid(x, 0.2, 0.5)
C.param_relu(W, x)
C.clip(x, 0, 1)
C.plus(x, y)  # gives Function
C.plus(x, y, 1, rows)
C.minus(x, 1)
C.element_times(x, y, x)
C.element_divide(x, 2.0)
C.element_max(x, y), C.element_min(x, y)
C.pow(x, 2)
C.times(x, W)  # gives Function
C.times(x, W, output_rank=1)
C.times_transpose(W, W)
C.less(x, y), C.greater(x, 0), C.equal(x, y), C.not_equal(x, y)
C.element_select(C.greater(x, 0), x, 0)
C.reduce_sum(x, axis=0)
C.reduce_mean(x)
C.reduce_max(x, axis=[0])
C.argmax(x, axis=0)
C.softmax(x), C.log_softmax(x), C.hardmax(x)
C.reshape(image, (3, 1024))
C.transpose(image, (1, 2, 0))
C.splice(x, y, axis=0)
C.slice(x, 0, 0, 1)
C.gather(W, two)
C.one_hot(two, 10)
C.dropout(x, 0.5)
C.dropout(x, dropout_rate=0.5, seed=1)
C.cast(x, np.float64)
C.cast(x, "float64")
C.stop_gradient(x)
C.alias(x, "again")
C.combine([x, y])
C.combine(x, y)
C.pad(x, [(1, 1)])
C.top_k(x, 2)
C.reduce_log_sum_exp(x, 0)
C.flatten(image)
C.squeeze(image), C.expand_dims(x, 0)
C.ones_like(x), C.zeros_like(x)
C.convolution(C.parameter((8, 3, 3, 3)), image)
C.pooling(image, C.MAX_POOLING, (2, 2), (2, 2))
C.ops.relu(x)  # gives Function
C.ops.input_variable(2)
C.ops.sequence.last(words)

C.rellu(x)  # error
C.Relu(x)  # error
C.relu()  # error
C.relu(x, y)  # error
C.relu("x")  # error
C.relu(None)  # error
C.relu({x: 1})  # error
C.relu(x, nam="h")  # error
C.relu(x, name=1)  # error
C.plus(x, "1")  # error
C.plus(x)  # error
C.minus(x)  # error
C.minus(x, y, x)  # error
C.leaky_relu(x, alpha="0.1")  # error
C.hard_sigmoid(x)  # error
C.dropout(x, dropout_rate="half")  # error
C.dropout(x, rate=0.5)  # error
C.times(x)  # error
C.times(x, W, output_rank="1")  # error
C.element_select(x, y)  # error
C.reshape(image)  # error
C.slice(x)  # error
C.cast(x)  # error
C.cast(x, 3)  # error
C.clip(x, 0)  # error
C.one_hot(two)  # error
C.softmax(x, axes=0)  # error
C.concat(x, y)  # error
C.matmul(x, W)  # error
C.ops.rellu(x)  # error
C.pooling(image)  # error

# ---- Python's operators ----

x + 1  # gives Function
1 - C.relu(x)  # gives Function
x * y / 2 - W  # gives Function
rows + x
x @ W  # gives Function
-x, abs(x)
x[0]
x[0:1]
x + "1"  # error
x - None  # error

# ---- sequences, random numbers ----

C.sequence.last(words)  # gives Function
C.sequence.first(words)
C.sequence.past_value(words)
C.sequence.past_value(words, initial_state=0, time_step=2)
C.sequence.future_value(words, 0.5)
C.sequence.reduce_sum(words)
C.sequence.gather(words, C.sequence.is_first(words))
C.sequence.broadcast_as(x, words)
C.sequence.slice(words, 0, -1)
C.sequence.unpack(words, padding_value=0)
C.to_sequence(C.input_variable((C.FreeDimension, 2)))
C.random.normal((2, 3))  # gives Function
C.random.uniform(2, low=-1, high=1)
C.random.uniform_like(x)
C.random.bernoulli((2,), dtype=np.float32, mean=0.5)
C.sequence.lst(words)  # error
C.sequence.last()  # error
C.sequence.past_value()  # error
C.sequence.past_value(words, time_step="1")  # error
C.sequence.input_variable()  # error
C.sequence.slice(words, "0", 1)  # error
C.random.norml((2,))  # error
C.random.normal("2")  # error
C.random.normal((2,), scale="1")  # error
C.random.uniform()  # error

# ---- variables ----

C.Parameter(3, init=rows)
C.Constant(value=1, shape=(2,))
C.placeholder()  # gives Placeholder
C.placeholder(name="p")
C.input_variable((C.FreeDimension, 2), dynamic_axes=[C.Axis.default_batch_axis()])
W.value
x.shape
C.Parameter((2,), initializer=1)  # error
C.Parameter((2,), init="zeros")  # error
C.Parameter((2,), dtype=32)  # error
C.Constant("1")  # error
C.input_variable()  # error
C.input_variable("2")  # error
C.input_variable(2, type=np.float32)  # error
C.input_variable(2, dynamic_axes="batch")  # error
C.inputvariable(2)  # error
x.shap  # error

# ---- layers ----

Dense(3)  # gives Function
Dense(3)(x)  # gives Function
Dense((3, 4), activation=C.relu, init=C.glorot_uniform(), bias=False, name="top")
C.layers.Dense([3], activation=None, init_bias=0.1)
Dense(3, activation=lambda z: z * 2)
C.layers.Embedding(10)(words)  # gives Function
C.layers.Embedding(weights=rows)
C.layers.Convolution((3, 3), 16, pad=True, activation=C.relu)(image)  # gives Function
C.layers.Convolution2D(3, 8, strides=2, pad=[True, False])
C.layers.MaxPooling((2, 2), strides=2)
C.layers.BatchNormalization(map_rank=1)(image)
C.layers.LayerNormalization()
C.layers.Dropout(0.2)
C.layers.Activation(C.tanh)
Recurrence(LSTM(8))(words)  # gives Function
Recurrence(GRU(8), go_backwards=True, initial_state=0.1)
C.layers.Fold(LSTM(4))
C.layers.Delay(2)
Sequential([Dense(4), C.relu, Dense(2)])  # gives Function
Sequential([Dense(4), C.relu, Dense(2)])(x)  # gives Function
C.layers.For(range(3), lambda i: Dense(i))(x)  # gives Function
C.layers.ResNetBlock(Dense(2))
C.layers.AttentionModel(8)
Dense(3) >> C.relu
with C.default_options(activation=C.relu), C.layers.default_options(init=C.he_normal()):
    Dense(3)
Dense()  # error
Dense("3")  # error
Dense(3, activaton=C.relu)  # error
Dense(3, activation="relu")  # error
Dense(3, init="uniform")  # error
Dense(3, bias="no")  # error
Dense(3, input_rank="1")  # error
LSTM()  # error
LSTM(3, peepholes=True)  # error
LSTM(3, activation=0)  # error
C.layers.Dens(3)  # error
C.layers.Dense3(3)  # error
C.layers.Convolution()  # error
C.layers.Convolution2D((3, 3), "8")  # error
C.layers.MaxPooling()  # error
C.layers.Dropout("half")  # error
C.layers.Embedding(shape="10")  # error
Recurrence()  # error
Recurrence(3)  # error
Sequential()  # error
Sequential(3)  # error
C.layers.Delay("1")  # error
C.layers.For(3, Dense)  # error

# ---- losses, learners, training ----

z = Dense(2)(x)
loss = C.cross_entropy_with_softmax(z, y)  # gives Function
metric = C.losses.squared_error(z, y)  # gives Function
C.metrics.classification_error(z, y)  # gives Function
C.classification_error(z, y, topN=1)
C.binary_cross_entropy(z, y)
C.losses.cosine_distance(z, y)
schedule = C.learning_parameter_schedule(0.1)
C.learning_parameter_schedule([0.1, (2, 0.01)], minibatch_size=32, epoch_size=1000)
C.sgd(z.parameters, schedule)  # gives Learner
C.sgd(z.parameters, 0.1, minibatch_size=C.learners.IGNORE)
C.sgd(z.parameters, 0.1, 0.0, 1e-4)
C.adam(z.parameters, lr=0.001, momentum=0.9)  # gives Learner
C.learners.adam(z.parameters, schedule, C.momentum_schedule(0.9), l2_regularization_weight=1e-4)
C.momentum_sgd(z.parameters, [0.1, 0.01], 0.9, unit_gain=False)
C.adagrad(z.parameters, 0.1), C.rmsprop(z.parameters, 0.1, 0.9, 1.1, 0.9, 2.0, 0.5)
trainer = C.Trainer(z, (loss, metric), [C.sgd(z.parameters, 0.1)])  # gives Trainer
C.Trainer(None, loss, C.sgd(z.parameters, 0.1), progress_writers=C.logging.ProgressPrinter(10))
trainer.train_minibatch({x: rows, y: rows})
trainer.test_minibatch({x: rows, y: rows})
trainer.save_checkpoint("model.ckp")
C.Evaluator(metric)
C.cross_entropy(z, y)  # error
C.cross_entropy_with_softmax(z)  # error
C.losses.squared_eror(z, y)  # error
C.losses.squared_error(z, "y")  # error
C.metrics.clasification_error(z, y)  # error
C.classification_error(z, y, topN="1")  # error
C.learning_parameter_schedule()  # error
C.adm(z.parameters, 0.1, 0.9)  # error
C.adam(z.parameters)  # error
C.adam(z.parameters, 0.1)  # error
C.adam(z.parameters, "0.1", 0.9)  # error
C.adam(z.parameters, 0.1, 0.9, beta=0.9)  # error
C.adam(3, 0.1, 0.9)  # error
C.sgd(z.parameters, 0.1, l2_regularization_weight="1")  # error
C.sgd(z.parameters, 0.1, 0.0, "1")  # error
C.learners.sdg(z.parameters, 0.1)  # error
C.Trainer(z, loss)  # error
C.Trainer(z, "loss", [C.sgd(z.parameters, 0.1)])  # error
C.Trainer(z, loss, "sgd")  # error
trainer.train_minibach({x: rows})  # error
trainer.save_checkpoint()  # error

# ---- data, progress, files, devices ----

streams = C.io.StreamDefs(features=C.io.StreamDef(field="x", shape=2))
C.io.CTFDeserializer("a.ctf", streams)  # gives CTFDeserializer
C.io.MinibatchSource(C.io.CTFDeserializer("a.ctf", streams), randomize=False, max_sweeps=1)
C.io.CBFDeserializer("a.cbf", streams)
C.io.MinibatchSourceFromData({"x": rows})
C.io.transforms.crop(crop_type="center")
C.logging.ProgressPrinter(freq=10, num_epochs=2)  # gives ProgressPrinter
C.logging.TensorBoardProgressWriter(log_dir="logs")
C.logging.plot(z)
C.load_model("z.dnn")  # gives Function
z.save("z.dnn")
z.eval({x: rows})
z.clone(C.CloneMethod.freeze)
C.cpu()  # gives DeviceDescriptor
C.try_set_default_device(C.cpu())
C.asarray(rows)
C.debugging.set_checked_mode(True)
C.cntk_py.set_fixed_random_seed(1)
C.io.CTFDeserialiser("a.ctf", streams)  # error
C.io.CTFDeserializer()  # error
C.io.CTFDeserializer(3, streams)  # error
C.io.MinibatchSource(randomise=False)  # error
C.io.StreamDef(fields="x")  # error
C.logging.ProgressPrinter("10", bad=1)  # error
C.logging.ProgresPrinter()  # error
C.load_model()  # error
C.loadmodel("z.dnn")  # error
C.gpu()  # error
C.try_set_default_device("cpu")  # error
C.debugging.set_checkd_mode(True)  # error
C.eval_(z)  # error

# ---- what a plugin has registered ----

C.softcap(x)  # gives Function
C.ops.softcap(x, cap=2)
C.sequence.halve(words)  # gives Function
C.layers.Halved(2)(x)  # gives Function
C.io.TapeDeserializer("a.tape")  # gives TapeDeserializer
C.softcap(x, cap="1")  # error
C.sequence.halve()  # error
C.layers.Halved("2")  # error
C.io.TapeDeserializer()  # error
C.ops.Softcap(x)  # error

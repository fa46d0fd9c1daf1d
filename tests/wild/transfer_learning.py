"""Transfer learning: train a small convolutional network, save it, cut it at a layer, freeze what is below, train a new head."""

from __future__ import print_function
import os
import numpy as np
import cntk as C
from cntk.layers import *
from cntk import load_model, Trainer, combine, as_composite, softmax, CloneMethod, placeholder
from cntk.logging.graph import find_by_name, find_all_with_name, get_node_outputs, depth_first_search, find_by_uid, plot
from cntk.learners import momentum_sgd, learning_rate_schedule, momentum_as_time_constant_schedule, UnitType
from cntk.losses import cross_entropy_with_softmax
from cntk.metrics import classification_error

C.cntk_py.set_fixed_random_seed(1)
rng = np.random.RandomState(5)

num_channels, image_height, image_width = 3, 16, 16
base_model_file = os.path.join(os.getcwd(), "base.model")
tl_model_file = os.path.join(os.getcwd(), "transfer.model")


def stripes(n, classes):
    """Images of stripes, whose distance is their class."""
    y = rng.randint(0, classes, n)
    x = np.zeros((n, num_channels, image_height, image_width), dtype=np.float32)
    for i, c in enumerate(y):
        x[i, :, :, :: c + 2] = 200
        x[i] += rng.randint(0, 55, x[i].shape)
    return x, np.eye(classes, dtype=np.float32)[y]


def create_base_model(input, out_dims):
    with default_options(init=C.glorot_uniform(seed=2), pad=True):
        net = Convolution((3, 3), 8, activation=C.relu, name="conv1")(input)
        net = MaxPooling((2, 2), strides=(2, 2), name="pool1")(net)
        net = Convolution((3, 3), 12, bias=False, name="conv2")(net)
        net = BatchNormalization(map_rank=1, name="bn2")(net)
        net = C.relu(net, name="relu2")
        net = AveragePooling((8, 8), name="z.x")(net)
    return Dense(out_dims, activation=None, name="z", init=C.glorot_uniform(seed=4))(net)


def train(model, image_input, label_input, data, lr, epochs, minibatch_size=20):
    loss = cross_entropy_with_softmax(model, label_input)
    error = classification_error(model, label_input)
    lr_schedule = learning_rate_schedule(lr, unit=UnitType.minibatch)
    mm_schedule = momentum_as_time_constant_schedule(40)
    learner = momentum_sgd(model.parameters, lr_schedule, mm_schedule, l2_regularization_weight=0.0005)
    trainer = Trainer(model, (loss, error), learner)
    features, labels = data
    for epoch in range(epochs):
        total = count = 0
        for start in range(0, len(features), minibatch_size):
            trainer.train_minibatch(
                {image_input: features[start : start + minibatch_size], label_input: labels[start : start + minibatch_size]}
            )
            total += trainer.previous_minibatch_loss_average * trainer.previous_minibatch_sample_count
            count += trainer.previous_minibatch_sample_count
        print("  epoch %d: loss %.3f" % (epoch + 1, total / count))
    return trainer


# -- the base model -------------------------------------------------------------------------------------------------------------
features = C.input_variable((num_channels, image_height, image_width), name="features")
label = C.input_variable(5, name="labels")
base = create_base_model(features - 114, 5)
print("Training the base model")
train(base, features, label, stripes(80, 5), 0.05, 2)
base.save(base_model_file)


# -- what is in it --------------------------------------------------------------------------------------------------------------
base_model = load_model(base_model_file)
print("outputs", [(n.name, n.shape) for n in get_node_outputs(base_model) if n.name])
print("blocks", [f.op_name for f in depth_first_search(base_model, lambda v: getattr(v, "is_block", False), depth=0)])
print(
    "within them",
    sorted(f.op_name for f in depth_first_search(base_model.root_function, lambda f: hasattr(f, "op_name") and f.is_primitive, depth=-1)),
)
for name in ("conv1", "pool1", "relu2", "z", "not there"):
    node = find_by_name(base_model, name)
    print(name, None if node is None else node.outputs[0].shape, None if node is None else isinstance(node, C.Function))
print("named as W", len(find_all_with_name(base_model, "W")), [p.shape for p in base_model.parameters])
z = base_model.find_by_name("z")
print("same node", find_by_uid(base_model, z.uid).name)
try:
    find_by_name(base_model, "W", depth=-1)
except ValueError:
    print("several are called W")
print("graph", len(plot(base_model).strip()) > 0)


# -- a new head -----------------------------------------------------------------------------------------------------------------
def create_tl_model(base_model, feature_node_name, last_hidden_node_name, num_classes, input_features, freeze=False):
    feature_node = find_by_name(base_model, feature_node_name)
    last_node = find_by_name(base_model, last_hidden_node_name)
    cloned_layers = combine([last_node.owner if hasattr(last_node, "owner") else last_node]).clone(
        CloneMethod.freeze if freeze else CloneMethod.clone, {feature_node: placeholder(name="features")}
    )
    feat_norm = input_features - C.Constant(114)
    cloned_out = cloned_layers(feat_norm)
    z = Dense(num_classes, activation=None, name="prediction", init=C.normal(0.05, seed=9))(cloned_out)
    return cloned_layers, z


for freeze in (True, False):
    image_input = C.input_variable((num_channels, image_height, image_width))
    label_input = C.input_variable(3)
    cut, tl_model = create_tl_model(base_model, "features", "z.x", 3, image_input, freeze)
    print("frozen" if freeze else "trained", [p.name for p in tl_model.parameters], len(tl_model.constants))
    before = [np.copy(c.value) for c in cut.constants if c.name == "W"]
    train(tl_model, image_input, label_input, stripes(60, 3), 0.1, 2)
    print("  constants kept", all((c.value == b).all() for c, b in zip([c for c in cut.constants if c.name == "W"], before)))

tl_model.save(tl_model_file)


# -- evaluating, and features of a hidden layer -----------------------------------------------------------------------------------
loaded = load_model(tl_model_file)
test_features, test_labels = stripes(10, 3)
output = softmax(loaded)
argument = output.arguments[0]
probabilities = output.eval({argument: test_features})
print("probabilities", probabilities.shape, np.abs(probabilities.sum(axis=1) - 1).max() < 1e-5)
print(" ".join("%.2f" % p for p in probabilities[0]))

hidden = (
    as_composite(find_by_name(loaded, "prediction").inputs[0].owner) if find_by_name(loaded, "prediction").inputs[0].is_output else loaded
)
pooled = combine([find_by_name(loaded, "pool1").outputs[0]])
values = pooled.eval({pooled.arguments[0]: test_features[:2]})
print("pool1", values.shape, "%.2f" % values.mean())
both = combine([loaded.outputs[0], find_by_name(loaded, "relu2").outputs[0]])
results = both.eval({both.arguments[0]: test_features[:2]})
print("both", sorted(v.shape for v in results.values()))
root = as_composite(loaded.root_function)
print(
    "root",
    root.root_function.op_name,
    np.array_equal(root.eval({root.arguments[0]: test_features}), loaded.eval({loaded.arguments[0]: test_features})),
)

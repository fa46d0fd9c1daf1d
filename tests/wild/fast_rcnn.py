"""A network in the shape of Fast R-CNN: proposals of regions, pooled from a feature map; classes and boxes, smooth L1 loss."""

from __future__ import print_function
import numpy as np
import cntk
from cntk import *
from cntk import input_variable, reduce_sum, ops, momentum_schedule
from cntk.initializer import glorot_uniform, normal
from cntk.layers import Convolution2D, MaxPooling, Sequential, Constant, placeholder, For
from cntk.learners import momentum_sgd, learning_rate_schedule, UnitType, learning_parameter_schedule
from cntk.logging import log_number_of_parameters, ProgressPrinter
from cntk.logging.graph import find_by_name, plot
from cntk.metrics import classification_error
from cntk.losses import cross_entropy_with_softmax

NUM_CHANNELS, HEIGHT, WIDTH = 3, 32, 32
NUM_ROIS = 6
NUM_CLASSES = 4
ROI_DIM = 4
NORMALISE = True

cntk.cntk_py.set_fixed_random_seed(11)
cntk.cntk_py.force_deterministic_algorithms()
rng = np.random.RandomState(11)


class AttrDict(dict):
    def __getattr__(self, name):
        return self[name]


cfg = AttrDict(NETWORK=AttrDict(FEATURE_NODE="data", LAST_CONV="relu2"), L1_SIGMA=1.0, LR_PER_SAMPLE=[0.01] * 2 + [0.001], L2=0.0005)


def SmoothL1Loss(sigma, bbox_pred, bbox_targets, bbox_inside_weights, bbox_outside_weights):
    """w_out * f(w_in * (pred - target)), where f is quadratic up to 1 / sigma^2 and linear beyond."""
    sigma2 = sigma * sigma
    inside_mul_abs = ops.abs(bbox_inside_weights * (bbox_pred - bbox_targets))
    smooth_l1_sign = ops.less(inside_mul_abs, 1.0 / sigma2)
    smooth_l1_option1 = ops.element_times(ops.element_times(inside_mul_abs, inside_mul_abs), 0.5 * sigma2)
    smooth_l1_option2 = ops.minus(inside_mul_abs, 0.5 / sigma2)
    smooth_l1_result = ops.plus(
        ops.element_times(smooth_l1_option1, smooth_l1_sign), ops.element_times(smooth_l1_option2, ops.minus(1.0, smooth_l1_sign))
    )
    return ops.element_times(bbox_outside_weights, smooth_l1_result)


def create_conv_layers():
    return Sequential(
        [
            For(
                range(2),
                lambda i: [
                    Convolution2D((3, 3), [8, 12][i], init=glorot_uniform(seed=i + 1), activation=None, pad=True, name="conv%d" % (i + 1)),
                    lambda x: relu(x, name="relu%d" % (i + 1)),
                    MaxPooling((2, 2), (2, 2), name="pool%d" % (i + 1)),
                ],
            ),
        ]
    )


def create_detector(features, rois, conv_layers):
    with default_options(init=normal(0.05, seed=77)):
        conv_out = conv_layers(features)
        roi_out = roipooling(conv_out, rois, cntk.MAX_POOLING, (3, 3), spatial_scale=1 / 4.0, name="roi_out")
    W6 = parameter(shape=(12, 3, 3, 20), init=normal(0.05, seed=5), name="fc6.W")
    b6 = parameter(shape=(20,), init=0, name="fc6.b")
    fc_out = relu(times(roi_out, W6, output_rank=1) + b6, name="fc6")
    W = parameter(shape=(20, NUM_CLASSES), init=normal(scale=0.01, seed=6), name="cls_score.W")
    b = parameter(shape=NUM_CLASSES, init=0, name="cls_score.b")
    cls_score = plus(times(fc_out, W), b, name="cls_score")
    Wr = parameter(shape=(20, NUM_CLASSES * 4), init=normal(scale=0.001, seed=7), name="bbox_regr.W")
    br = parameter(shape=NUM_CLASSES * 4, init=0, name="bbox_regr.b")
    bbox_pred = plus(times(fc_out, Wr), br, name="bbox_regr")
    return cls_score, bbox_pred


def create_losses(cls_score, bbox_pred, labels, targets, inside):
    cls_loss = cross_entropy_with_softmax(cls_score, labels, axis=1)
    cls_mask = reduce_sum(labels, axis=1)
    cls_normalised = reduce_sum(cls_loss * cls_mask) / reduce_sum(cls_mask)
    cls_loss = reduce_sum(cls_normalised, name="cls_loss")
    error = classification_error(cls_score, labels, axis=1, name="pred_error")
    p_bbox, p_target, p_inside = placeholder(), placeholder(), placeholder()
    outside = Constant(1.0)
    body = SmoothL1Loss(cfg.L1_SIGMA, p_bbox, p_target, p_inside, outside)
    bbox_loss = as_block(body, [(p_bbox, bbox_pred), (p_target, targets), (p_inside, inside)], "SmoothL1Loss", "smooth_l1")
    bbox_loss = reduce_sum(bbox_loss) / NUM_ROIS
    bbox_loss = alias(bbox_loss, name="bbox_loss")
    loss = plus(cls_loss, bbox_loss, name="detection_loss")
    return loss, error


def make_image(seed):
    r = np.random.RandomState(seed)
    image = r.rand(NUM_CHANNELS, HEIGHT, WIDTH).astype(np.float32)
    rois = np.zeros((NUM_ROIS, 4), np.float32)
    labels = np.zeros((NUM_ROIS, NUM_CLASSES), np.float32)
    targets = np.zeros((NUM_ROIS, NUM_CLASSES * 4), np.float32)
    inside = np.zeros_like(targets)
    for i in range(NUM_ROIS):
        x, y = r.randint(0, 20, 2)
        w, h = r.randint(6, 12, 2)
        c = r.randint(0, NUM_CLASSES)
        rois[i] = x, y, x + w, y + h
        image[c % 3, y : y + h, x : x + w] += 1 + c
        labels[i, c] = 1
        if c > 0:
            targets[i, 4 * c : 4 * c + 4] = r.uniform(-2, 2, 4)
            inside[i, 4 * c : 4 * c + 4] = 1
    return image, rois, labels, targets, inside


image_input = input_variable(shape=(NUM_CHANNELS, HEIGHT, WIDTH), dynamic_axes=[Axis.default_batch_axis()], name=cfg.NETWORK.FEATURE_NODE)
roi_proposals = input_variable((NUM_ROIS, ROI_DIM), dynamic_axes=[Axis.default_batch_axis()], name="rois")
label_targets = input_variable((NUM_ROIS, NUM_CLASSES), dynamic_axes=[Axis.default_batch_axis()])
bbox_targets = input_variable((NUM_ROIS, NUM_CLASSES * 4), dynamic_axes=[Axis.default_batch_axis()])
bbox_inside = input_variable((NUM_ROIS, NUM_CLASSES * 4), dynamic_axes=[Axis.default_batch_axis()])

conv_layers = create_conv_layers()
cls_score, bbox_pred = create_detector((image_input - 0.5) if NORMALISE else image_input, roi_proposals, conv_layers)
loss, pred_error = create_losses(cls_score, bbox_pred, label_targets, bbox_targets, bbox_inside)
model = combine([cls_score, bbox_pred, loss, pred_error])
log_number_of_parameters(combine([cls_score, bbox_pred]))
print("loss", loss.shape, "error", pred_error.shape, "block", find_by_name(loss, "smooth_l1").op_name)
print("roi_out", find_by_name(loss, "roi_out").shape)

# biases are trained at twice the rate, as others do; two learners for one network
biases = [p for p in loss.parameters if p.name.endswith("b") or len(p.shape) == 1]
others = [p for p in loss.parameters if p not in biases]
print("parameters", sorted((p.name, p.shape) for p in others), len(biases))
lr_schedule = learning_parameter_schedule(cfg.LR_PER_SAMPLE, minibatch_size=1, epoch_size=4)
bias_lr_schedule = learning_parameter_schedule([v * 2 for v in cfg.LR_PER_SAMPLE], minibatch_size=1, epoch_size=4)
mm_schedule = momentum_schedule(0.9)
learners = [
    momentum_sgd(others, lr_schedule, mm_schedule, l2_regularization_weight=cfg.L2, unit_gain=False, use_mean_gradient=True),
    momentum_sgd(biases, bias_lr_schedule, mm_schedule, unit_gain=False, use_mean_gradient=True),
]
trainer = Trainer(None, (loss, pred_error), learners)

for epoch in range(3):
    sums = np.zeros(2)
    for i in range(4):
        data = make_image(i)
        feed = {
            roi_proposals: data[1][None],
            image_input: data[0][None],
            label_targets: data[2][None],
            bbox_targets: data[3][None],
            bbox_inside: data[4][None],
        }
        trainer.train_minibatch(feed, device=None)
        sums += trainer.previous_minibatch_loss_average, trainer.previous_minibatch_evaluation_average
    print("Epoch %d: loss %.3f error %.2f rate %.3f" % (epoch + 1, sums[0] / 4, sums[1] / 4, learners[0].learning_rate()))

# evaluation: one network that takes an image with regions and says classes and boxes
cls_pred = softmax(cls_score, axis=1, name="cls_pred")
eval_model = combine([cls_pred, bbox_pred])
image, rois, labels, targets, inside = make_image(100)
output = eval_model.eval({eval_model.arguments[0]: [image], eval_model.arguments[1]: [rois]})
output = dict((v.name, k) for v, k in output.items())
print(sorted((name, np.shape(v)) for name, v in output.items()))
print("probabilities", " ".join("%.2f" % v for v in output["cls_pred"][0][0]))
print("box %.3f" % np.abs(output["bbox_regr"][0]).sum())


def regress_rois(roi_proposals, roi_regression_factors, labels):
    boxes = roi_proposals.copy()
    for i, label in enumerate(labels):
        if label > 0:
            dx, dy, dw, dh = roi_regression_factors[i, label * 4 : (label + 1) * 4]
            w, h = boxes[i, 2] - boxes[i, 0] + 1, boxes[i, 3] - boxes[i, 1] + 1
            cx, cy = boxes[i, 0] + w / 2 + dx * w, boxes[i, 1] + h / 2 + dy * h
            w, h = np.exp(dw) * w, np.exp(dh) * h
            boxes[i] = cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2
    return boxes


detected = output["cls_pred"][0].argmax(axis=1)
print("boxes", " ".join("%.1f" % v for v in regress_rois(rois, output["bbox_regr"][0], detected).sum(axis=0)))

# gradients of the loss with respect to the image, for a look at what the network sees
image_with_gradient = input_variable((NUM_CHANNELS, HEIGHT, WIDTH), needs_gradient=True)
score = reduce_max(conv_layers(image_with_gradient))
gradient = score.grad({image_with_gradient: [image]}, wrt=[image_with_gradient])
print("gradient", np.shape(gradient), "%.3f" % np.abs(gradient).sum())
model.save("fast_rcnn.model")
again = load_model("fast_rcnn.model")
print("saved", [o.name for o in again.outputs], len(again.arguments))
print("scores", np.allclose(find_by_name(again, "cls_score").inputs[0].shape, find_by_name(model, "cls_score").inputs[0].shape))

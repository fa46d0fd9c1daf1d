# Names that plugins register, for editors and type checkers; made by: make stubs

from cntk.plugins.ops.activation import elu as elu
from cntk.plugins.ops.activation import hard_sigmoid as hard_sigmoid
from cntk.plugins.ops.activation import leaky_relu as leaky_relu
from cntk.plugins.ops.activation import param_relu as param_relu
from cntk.plugins.ops.activation import relu as relu
from cntk.plugins.ops.activation import selu as selu
from cntk.plugins.ops.activation import sigmoid as sigmoid
from cntk.plugins.ops.activation import softplus as softplus
from cntk.plugins.ops.activation import softsign as softsign
from cntk.plugins.ops.activation import straight_through_impl as straight_through_impl
from cntk.plugins.ops.activation import tanh as tanh
from cntk.plugins.ops.arithmetic import abs as abs
from cntk.plugins.ops.arithmetic import element_divide as element_divide
from cntk.plugins.ops.arithmetic import element_times as element_times
from cntk.plugins.ops.arithmetic import mean as mean
from cntk.plugins.ops.arithmetic import minus as minus
from cntk.plugins.ops.arithmetic import negate as negate
from cntk.plugins.ops.arithmetic import plus as plus
from cntk.plugins.ops.arithmetic import pow as pow
from cntk.plugins.ops.arithmetic import reciprocal as reciprocal
from cntk.plugins.ops.arithmetic import square as square
from cntk.plugins.ops.arithmetic import sum as sum
from cntk.plugins.ops.batch import to_batch as to_batch
from cntk.plugins.ops.batch import unpack_batch as unpack_batch
from cntk.plugins.ops.batch_normalization import batch_normalization as batch_normalization
from cntk.plugins.ops.comparison import element_and as element_and
from cntk.plugins.ops.comparison import element_not as element_not
from cntk.plugins.ops.comparison import element_or as element_or
from cntk.plugins.ops.comparison import element_select as element_select
from cntk.plugins.ops.comparison import element_xor as element_xor
from cntk.plugins.ops.comparison import equal as equal
from cntk.plugins.ops.comparison import greater as greater
from cntk.plugins.ops.comparison import greater_equal as greater_equal
from cntk.plugins.ops.comparison import less as less
from cntk.plugins.ops.comparison import less_equal as less_equal
from cntk.plugins.ops.comparison import not_equal as not_equal
from cntk.plugins.ops.convolution import convolution as convolution
from cntk.plugins.ops.convolution import convolution_transpose as convolution_transpose
from cntk.plugins.ops.cosine import cosine_distance as cosine_distance
from cntk.plugins.ops.cosine import cosine_distance_with_negative_samples as cosine_distance_with_negative_samples
from cntk.plugins.ops.cropping import crop_automatic as crop_automatic
from cntk.plugins.ops.cropping import crop_automatic_with_ancestors as crop_automatic_with_ancestors
from cntk.plugins.ops.cropping import crop_manual as crop_manual
from cntk.plugins.ops.ctc import forward_backward as forward_backward
from cntk.plugins.ops.ctc import labels_to_graph as labels_to_graph
from cntk.plugins.ops.dropout import dropout as dropout
from cntk.plugins.ops.edit_distance import edit_distance_error as edit_distance_error
from cntk.plugins.ops.elementary import ceil as ceil
from cntk.plugins.ops.elementary import clip as clip
from cntk.plugins.ops.elementary import exp as exp
from cntk.plugins.ops.elementary import floor as floor
from cntk.plugins.ops.elementary import log as log
from cntk.plugins.ops.elementary import round as round
from cntk.plugins.ops.elementary import sqrt as sqrt
from cntk.plugins.ops.extremum import argmax as argmax
from cntk.plugins.ops.extremum import argmin as argmin
from cntk.plugins.ops.extremum import reduce_max as reduce_max
from cntk.plugins.ops.extremum import reduce_min as reduce_min
from cntk.plugins.ops.eye import eye_like as eye_like
from cntk.plugins.ops.identity import alias as alias
from cntk.plugins.ops.identity import assign as assign
from cntk.plugins.ops.identity import cast as cast
from cntk.plugins.ops.identity import ones_like as ones_like
from cntk.plugins.ops.identity import stop_gradient as stop_gradient
from cntk.plugins.ops.identity import zeros_like as zeros_like
from cntk.plugins.ops.logistic import weighted_binary_cross_entropy as weighted_binary_cross_entropy
from cntk.plugins.ops.loss import binary_cross_entropy as binary_cross_entropy
from cntk.plugins.ops.loss import cross_entropy_with_softmax as cross_entropy_with_softmax
from cntk.plugins.ops.loss import squared_error as squared_error
from cntk.plugins.ops.maximum import element_max as element_max
from cntk.plugins.ops.maximum import element_min as element_min
from cntk.plugins.ops.maximum import log_add_exp as log_add_exp
from cntk.plugins.ops.metric import classification_error as classification_error
from cntk.plugins.ops.noise_contrastive import nce_loss as nce_loss
from cntk.plugins.ops.norm import reduce_l1 as reduce_l1
from cntk.plugins.ops.norm import reduce_l2 as reduce_l2
from cntk.plugins.ops.norm import reduce_sum_square as reduce_sum_square
from cntk.plugins.ops.normalization import local_response_normalization as local_response_normalization
from cntk.plugins.ops.normalization import mean_variance_normalization as mean_variance_normalization
from cntk.plugins.ops.pooling import pooling as pooling
from cntk.plugins.ops.pooling import unpooling as unpooling
from cntk.plugins.ops.product import times as times
from cntk.plugins.ops.product import times_transpose as times_transpose
from cntk.plugins.ops.random_sampling import random_sample as random_sample
from cntk.plugins.ops.random_sampling import random_sample_inclusion_frequency as random_sample_inclusion_frequency
from cntk.plugins.ops.ranking import lambda_rank as lambda_rank
from cntk.plugins.ops.ranking import ndcg_at_1 as ndcg_at_1
from cntk.plugins.ops.reduction import reduce_log_sum_exp as reduce_log_sum_exp
from cntk.plugins.ops.reduction import reduce_mean as reduce_mean
from cntk.plugins.ops.reduction import reduce_prod as reduce_prod
from cntk.plugins.ops.reduction import reduce_sum as reduce_sum
from cntk.plugins.ops.rnnstack import optimized_rnnstack as optimized_rnnstack
from cntk.plugins.ops.roipooling import roipooling as roipooling
from cntk.plugins.ops.scaling import image_scaler as image_scaler
from cntk.plugins.ops.scaling import per_dim_mean_variance_normalize as per_dim_mean_variance_normalize
from cntk.plugins.ops.sequence_broadcast import reconcile_dynamic_axes as reconcile_dynamic_axes
from cntk.plugins.ops.sequence_making import to_sequence as to_sequence
from cntk.plugins.ops.sequence_making import to_sequence_like as to_sequence_like
from cntk.plugins.ops.shaping import expand_dims as expand_dims
from cntk.plugins.ops.shaping import flatten as flatten
from cntk.plugins.ops.shaping import reshape as reshape
from cntk.plugins.ops.shaping import squeeze as squeeze
from cntk.plugins.ops.shaping import swapaxes as swapaxes
from cntk.plugins.ops.shaping import transpose as transpose
from cntk.plugins.ops.slicing import gather as gather
from cntk.plugins.ops.slicing import one_hot as one_hot
from cntk.plugins.ops.slicing import slice as slice
from cntk.plugins.ops.slicing import splice as splice
from cntk.plugins.ops.softmax import hardmax as hardmax
from cntk.plugins.ops.softmax import log_softmax as log_softmax
from cntk.plugins.ops.softmax import softmax as softmax
from cntk.plugins.ops.sorting import top_k as top_k
from cntk.plugins.ops.spatial import depth_to_space as depth_to_space
from cntk.plugins.ops.spatial import pad as pad
from cntk.plugins.ops.spatial import space_to_depth as space_to_depth
from cntk.plugins.ops.trigonometry import acos as acos
from cntk.plugins.ops.trigonometry import asin as asin
from cntk.plugins.ops.trigonometry import asinh as asinh
from cntk.plugins.ops.trigonometry import atan as atan
from cntk.plugins.ops.trigonometry import atanh as atanh
from cntk.plugins.ops.trigonometry import cos as cos
from cntk.plugins.ops.trigonometry import cosh as cosh
from cntk.plugins.ops.trigonometry import sin as sin
from cntk.plugins.ops.trigonometry import sinh as sinh
from cntk.plugins.ops.trigonometry import tan as tan

__all__ = [
    "abs",
    "acos",
    "alias",
    "argmax",
    "argmin",
    "asin",
    "asinh",
    "assign",
    "atan",
    "atanh",
    "batch_normalization",
    "binary_cross_entropy",
    "cast",
    "ceil",
    "classification_error",
    "clip",
    "convolution",
    "convolution_transpose",
    "cos",
    "cosh",
    "cosine_distance",
    "cosine_distance_with_negative_samples",
    "crop_automatic",
    "crop_automatic_with_ancestors",
    "crop_manual",
    "cross_entropy_with_softmax",
    "depth_to_space",
    "dropout",
    "edit_distance_error",
    "element_and",
    "element_divide",
    "element_max",
    "element_min",
    "element_not",
    "element_or",
    "element_select",
    "element_times",
    "element_xor",
    "elu",
    "equal",
    "exp",
    "expand_dims",
    "eye_like",
    "flatten",
    "floor",
    "forward_backward",
    "gather",
    "greater",
    "greater_equal",
    "hard_sigmoid",
    "hardmax",
    "image_scaler",
    "labels_to_graph",
    "lambda_rank",
    "leaky_relu",
    "less",
    "less_equal",
    "local_response_normalization",
    "log",
    "log_add_exp",
    "log_softmax",
    "mean",
    "mean_variance_normalization",
    "minus",
    "nce_loss",
    "ndcg_at_1",
    "negate",
    "not_equal",
    "one_hot",
    "ones_like",
    "optimized_rnnstack",
    "pad",
    "param_relu",
    "per_dim_mean_variance_normalize",
    "plus",
    "pooling",
    "pow",
    "random_sample",
    "random_sample_inclusion_frequency",
    "reciprocal",
    "reconcile_dynamic_axes",
    "reduce_l1",
    "reduce_l2",
    "reduce_log_sum_exp",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "reduce_sum_square",
    "relu",
    "reshape",
    "roipooling",
    "round",
    "selu",
    "sigmoid",
    "sin",
    "sinh",
    "slice",
    "softmax",
    "softplus",
    "softsign",
    "space_to_depth",
    "splice",
    "sqrt",
    "square",
    "squared_error",
    "squeeze",
    "stop_gradient",
    "straight_through_impl",
    "sum",
    "swapaxes",
    "tan",
    "tanh",
    "times",
    "times_transpose",
    "to_batch",
    "to_sequence",
    "to_sequence_like",
    "top_k",
    "transpose",
    "unpack_batch",
    "unpooling",
    "weighted_binary_cross_entropy",
    "zeros_like",
]

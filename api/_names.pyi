# Names that plugins register, for editors and type checkers; made by: make stubs

from cntk.learners import IGNORE as IGNORE
from cntk.learners import Learner as Learner
from cntk.learners import TrainingParameterSchedule as TrainingParameterSchedule
from cntk.learners import UnitType as UnitType
from cntk.learners import UserLearner as UserLearner
from cntk.learners import default_unit_gain_value as default_unit_gain_value
from cntk.learners import learning_parameter_schedule as learning_parameter_schedule
from cntk.learners import learning_parameter_schedule_per_sample as learning_parameter_schedule_per_sample
from cntk.learners import learning_rate_schedule as learning_rate_schedule
from cntk.learners import minibatch_size_schedule as minibatch_size_schedule
from cntk.learners import momentum_as_time_constant_schedule as momentum_as_time_constant_schedule
from cntk.learners import momentum_schedule as momentum_schedule
from cntk.learners import momentum_schedule_per_sample as momentum_schedule_per_sample
from cntk.learners import set_default_unit_gain_value as set_default_unit_gain_value
from cntk.learners import training_parameter_schedule as training_parameter_schedule
from cntk.losses import fmeasure as fmeasure
from cntk.losses import hierarchical_softmax_layer as hierarchical_softmax_layer
from cntk.losses import lattice_sequence_with_softmax as lattice_sequence_with_softmax
from cntk.ops import AVG_POOLING as AVG_POOLING
from cntk.ops import CONSTANT_PAD as CONSTANT_PAD
from cntk.ops import Function as Function
from cntk.ops import MAX_POOLING as MAX_POOLING
from cntk.ops import MAX_UNPOOLING as MAX_UNPOOLING
from cntk.ops import PoolingType_Average as PoolingType_Average
from cntk.ops import PoolingType_Max as PoolingType_Max
from cntk.ops import REFLECT_PAD as REFLECT_PAD
from cntk.ops import SYMMETRIC_PAD as SYMMETRIC_PAD
from cntk.ops import TIMES_NO_INFERRED_INPUT_RANK as TIMES_NO_INFERRED_INPUT_RANK
from cntk.ops import TIMES_REDUCE_SEQUENCE_AXIS_WITHOUT_INFERRED_INPUT_RANK as TIMES_REDUCE_SEQUENCE_AXIS_WITHOUT_INFERRED_INPUT_RANK
from cntk.ops import as_block as as_block
from cntk.ops import as_composite as as_composite
from cntk.ops import associative_multi_arg as associative_multi_arg
from cntk.ops import combine as combine
from cntk.ops import constant as constant
from cntk.ops import custom_proxy_op as custom_proxy_op
from cntk.ops import functions as functions
from cntk.ops import input as input
from cntk.ops import input_variable as input_variable
from cntk.ops import native_user_function as native_user_function
from cntk.ops import output_variable as output_variable
from cntk.ops import parameter as parameter
from cntk.ops import placeholder as placeholder
from cntk.ops import register_native_user_function as register_native_user_function
from cntk.ops import sequence as sequence
from cntk.learners._names import *
from cntk.ops._names import *

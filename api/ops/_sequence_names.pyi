# Names that plugins register, for editors and type checkers; made by: make stubs

from cntk.plugins.ops.delay import delay as delay
from cntk.plugins.ops.delay import future_value as future_value
from cntk.plugins.ops.delay import past_value as past_value
from cntk.plugins.ops.sequence_attention import attention as attention
from cntk.plugins.ops.sequence_broadcast import broadcast_as as broadcast_as
from cntk.plugins.ops.sequence_ends import is_first as is_first
from cntk.plugins.ops.sequence_ends import is_last as is_last
from cntk.plugins.ops.sequence_gathering import gather as gather
from cntk.plugins.ops.sequence_gathering import scatter as scatter
from cntk.plugins.ops.sequence_gathering import where as where
from cntk.plugins.ops.sequence_reduction import reduce_max as reduce_max
from cntk.plugins.ops.sequence_reduction import reduce_sum as reduce_sum
from cntk.plugins.ops.sequence_slicing import first as first
from cntk.plugins.ops.sequence_slicing import last as last
from cntk.plugins.ops.sequence_slicing import slice as slice
from cntk.plugins.ops.sequence_softmax import softmax as softmax
from cntk.plugins.ops.sequence_unpacking import unpack as unpack

__all__ = [
    "attention",
    "broadcast_as",
    "delay",
    "first",
    "future_value",
    "gather",
    "is_first",
    "is_last",
    "last",
    "past_value",
    "reduce_max",
    "reduce_sum",
    "scatter",
    "slice",
    "softmax",
    "unpack",
    "where",
]

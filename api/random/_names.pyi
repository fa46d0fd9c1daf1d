# Names that plugins register, for editors and type checkers; made by: make stubs

from cntk.plugins.ops.random_distribution import bernoulli as bernoulli
from cntk.plugins.ops.random_distribution import bernoulli_like as bernoulli_like
from cntk.plugins.ops.random_distribution import gumbel as gumbel
from cntk.plugins.ops.random_distribution import gumbel_like as gumbel_like
from cntk.plugins.ops.random_distribution import normal as normal
from cntk.plugins.ops.random_distribution import normal_like as normal_like
from cntk.plugins.ops.random_distribution import uniform as uniform
from cntk.plugins.ops.random_distribution import uniform_like as uniform_like

__all__ = [
    "bernoulli",
    "bernoulli_like",
    "gumbel",
    "gumbel_like",
    "normal",
    "normal_like",
    "uniform",
    "uniform_like",
]

"""From digits to numbers, many at once."""

from __future__ import annotations

from typing import Any

import numpy as np

PLUS, MINUS, ZERO = (ord(char) for char in "+-0")

EXACT = 15
"""As many digits make a whole number that float64 holds exactly; divided by a power of ten, which it holds too, it is rounded once."""

_POWERS = 10.0 ** np.arange(EXACT + 1)


def read_numbers(text: Any, starts: Any, ends: Any) -> Any:
    """The numbers that lie between *starts* and *ends* in bytes, separated by blanks, as float64.

    They follow the grammar: digits with a sign and a point or exponent perhaps.
    """
    if ((ends - starts) > EXACT).any() or np.isin(text, (ord("e"), ord("E"))).any():
        return np.fromstring(text.tobytes(), np.float64, sep=" ")
    signs = text[starts]
    first = starts + ((signs == MINUS) | (signs == PLUS))
    lengths = ends - first
    whole = np.zeros(len(first))  # the number without its point
    places = np.zeros(len(first), np.int8)  # digits behind the point
    behind = np.zeros(len(first), bool)
    left = np.arange(len(first))
    for place in range(int(lengths.max(initial=0))):
        left = left[lengths[left] > place]
        digits = text[first[left] + place] - np.uint8(ZERO)
        is_point = digits > 9
        if is_point.any():
            behind[left[is_point]] = True
            at, digits = left[~is_point], digits[~is_point]
        else:
            at = left
        whole[at] = whole[at] * 10 + digits
        places[at] += behind[at]
    return np.where(signs == MINUS, -whole, whole) / _POWERS[places]

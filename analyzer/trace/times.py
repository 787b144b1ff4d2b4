"""Microseconds as exporters write them -> exact integer nanoseconds.

Exporters print three decimals. A float64 holds every nanosecond of such a number below 2^43 us
(libkineto's time base keeps newer traces there), taken as whole part and fraction. A trace in
microseconds since the epoch passes that: then the text itself must be read.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np

from analyzer.trace.schema import Int64

# Up to here neighbouring float64 are less than one nanosecond apart.
EXACT_BELOW_US = float(2**43)
# A start, its base and its length within this (the year 2065) still add up in an int64.
LARGEST_NS = 3 * 10**18

NO_TIME = -(2**63)


class Inexact(Exception):  # noqa: N818 - a signal to read again, not a failure
    """A float stands where it cannot hold every nanosecond."""


def of_numbers(us: list[Any]) -> Int64:
    """Nanoseconds of decoded numbers, quoted ones among them; NO_TIME for None and the absurd.

    Raises Inexact at a float from 2^43 us on.
    """
    types = set(map(type, us))
    if not types <= {float, int}:
        return np.array([_of_one(u) for u in us], np.int64)
    value = np.array(us, np.float64)
    if not len(value) or np.abs(value).max() < EXACT_BELOW_US:
        whole = np.floor(value)
        part = np.rint((value - whole) * 1000)
        return np.asarray(whole.astype(np.int64) * 1000 + part.astype(np.int64))
    if float in types:
        raise Inexact
    return np.array([_in_range(1000 * u) for u in us], np.int64)


def _of_one(us: Any) -> int:
    if isinstance(us, str):
        return of_text(us.encode())
    if isinstance(us, float):
        return int(of_numbers([us])[0])
    return NO_TIME if us is None else _in_range(1000 * us)


def of_text(us: bytes) -> int:
    """Nanoseconds of decimal text, quoted or not, rounded at the third decimal.

    NO_TIME for text that is no number or one beyond LARGEST_NS.
    """
    us = us.strip(b'" ')
    if us[-4:-3] == b"." and us[:-4].isdigit() and us[-3:].isdigit():
        return _in_range(int(us[:-4] + us[-3:]))
    if us.isdigit():
        return _in_range(1000 * int(us))
    try:
        ns = Decimal(us.decode()) * 1000
        return int(ns.to_integral_value()) if abs(ns) <= LARGEST_NS else NO_TIME
    except (ArithmeticError, UnicodeDecodeError):
        return NO_TIME


def _in_range(ns: int) -> int:
    return ns if -LARGEST_NS <= ns <= LARGEST_NS else NO_TIME

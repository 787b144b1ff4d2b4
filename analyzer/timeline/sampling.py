"""Which one class names each piece of a time line, so that all pieces together keep the shares?

The class with most of each piece would never show what has a third of every piece. What a piece
leaves unsaid is carried to the next, as in the dithering of pictures. Times in ns, or counts.
"""

from __future__ import annotations

import numpy as np

from analyzer.trace.schema import Int64


def carried(table: Int64) -> list[int]:
    """Of each row (a piece) of [piece, class] the column that names it: of those the piece has any
    of, the one that most is still owed to; the first in a piece of nothing.
    """
    owed = np.zeros(table.shape[1], np.int64)
    chosen = []
    for row in table:
        owed += row
        name = int(np.where(row > 0, owed, np.iinfo(np.int64).min).argmax())
        owed[name] -= row.sum()
        chosen.append(name)
    return chosen

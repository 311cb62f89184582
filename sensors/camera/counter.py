"""A counter drawn into the pixels of a frame, and read back from them after any reasonable compression.

Two rows of 32 cells at the top of the frame: the upper row is the counter, most significant bit first, white
for one; the lower row is its inverse. A bit is the difference of its two cells, so brightness, contrast and
scaling don't matter, and a picture without a counter is told from one with a counter by the contrast of every pair.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

BITS = 32
ROW_SHARE = 24  # one row takes a 24th of the height: 20 pixels of 480
MIN_CONTRAST = 64.0


def cell_edges(width: int) -> list[int]:
    """The 33 columns between which the cells lie."""
    return [round(index * width / BITS) for index in range(BITS + 1)]


def draw_counter(image: npt.NDArray[np.uint8], counter: int) -> None:
    """Draw ``counter`` modulo 2^32 over the top of ``image`` (height, width, channels), in place."""
    row = max(1, image.shape[0] // ROW_SHARE)
    bits = np.unpackbits(np.frombuffer((counter % 2**BITS).to_bytes(4, "big"), dtype=np.uint8)) * np.uint8(255)
    line = np.repeat(bits, np.diff(cell_edges(image.shape[1])))
    shape = (1, image.shape[1]) + (1,) * (image.ndim - 2)
    image[:row] = line.reshape(shape)
    image[row : 2 * row] = (255 - line).reshape(shape)


def read_counter(image: npt.NDArray[np.uint8]) -> int | None:
    """The counter in the pixels of ``image`` (gray or color); None when there is none to be read."""
    height, width = image.shape[:2]
    row = max(1, height // ROW_SHARE)
    if height < 2 * ROW_SHARE or width < 2 * BITS:
        return None
    gray = image.reshape(height, width, -1)[: 2 * row].mean(axis=2)
    inner = slice(row // 4, row - row // 4)
    upper, lower = gray[:row][inner].mean(axis=0), gray[row:][inner].mean(axis=0)
    counter = 0
    for left, right in pairwise(cell_edges(width)):
        quarter = (right - left) // 4
        middle = slice(left + quarter, right - quarter)
        contrast = float(upper[middle].mean() - lower[middle].mean())
        if abs(contrast) < MIN_CONTRAST:
            return None
        counter = counter << 1 | (contrast > 0)
    return counter

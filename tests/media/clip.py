"""A test video whose every frame says which it is, so that a receiver can tell what came, when, and whether it
is whole: a grid of squares, grey by a hash of the frame's number, above a row of black and white ones that
spell the number twice, the second time inverted.

SPDX-License-Identifier: MIT
"""
import zlib

WIDTH, HEIGHT, SQUARE = 320, 256, 32
COLUMNS, ROWS = WIDTH // SQUARE, HEIGHT // SQUARE
BITS = 2 * COLUMNS // 2  # in each of the two rows at the top
RATE = 25  # frames a second


def greys(number):
    """Of the squares below the number, 16 to 235 as video has it; they move a little from frame to frame."""
    out = []
    for i in range(COLUMNS * (ROWS - 2)):
        base = zlib.crc32(bytes([i, 7])) % 140
        out.append(48 + (base + zlib.crc32(number.to_bytes(4, "big") + bytes([i])) % 40) % 160)
    return out


def frame(number):
    """The frame as I420."""
    bits = [number >> i & 1 for i in range(COLUMNS)]
    rows = [[235 if b else 16 for b in bits], [16 if b else 235 for b in bits]]
    grey = greys(number)
    rows += [grey[i:i + COLUMNS] for i in range(0, len(grey), COLUMNS)]
    luma = b"".join(b"".join(bytes([v]) * SQUARE for v in row) * SQUARE for row in rows)
    return luma + bytes([128]) * (WIDTH * HEIGHT // 2)


def centre(luma, stride, column, row):
    """The mean of a few pixels in the middle of a square."""
    total = 0
    for y in (-4, 0, 4):
        at = (row * SQUARE + SQUARE // 2 + y) * stride + column * SQUARE + SQUARE // 2
        total += sum(luma[at - 4:at + 4])
    return total / 24


def read(luma, stride):
    """(number, whole): what a decoded frame says, and whether all of it is as it was sent. number None: it
    cannot be read."""
    number = 0
    for column in range(COLUMNS):
        one, other = (centre(luma, stride, column, row) for row in (0, 1))
        if abs(one - other) < 100:
            return None, False
        number |= (one > other) << column
    wrong = sum(abs(centre(luma, stride, i % COLUMNS, 2 + i // COLUMNS) - v) > 14
                for i, v in enumerate(greys(number)))
    return number, wrong == 0

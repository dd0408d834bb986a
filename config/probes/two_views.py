"""Writes two pictures of one random scene, the second moved by a few pixels, as PGM into a folder."""

import random
import sys
from pathlib import Path

WIDTH, HEIGHT, MOVED = 320, 240, 8
random.seed(1)
scene = [[0] * (WIDTH + MOVED) for _ in range(HEIGHT)]
for _ in range(150):
    left, top, size, shade = (
        random.randrange(WIDTH),
        random.randrange(HEIGHT),
        random.randrange(6, 24),
        random.randrange(60, 255),
    )
    for row in scene[top : top + size]:
        row[left : left + size] = [shade] * len(row[left : left + size])
for number in (0, 1):
    picture = b"".join(bytes(row[number * MOVED :][:WIDTH]) for row in scene)
    Path(sys.argv[1], f"view{number}.pgm").write_bytes(
        b"P5 %d %d 255\n" % (WIDTH, HEIGHT) + picture
    )

#!/usr/bin/env python3
"""bench/linear.py: whether a packet costs the same among many connections, and among many streams.

Instructions of `leat bench scale` are counted by callgrind, of the measured messages alone, with one
connection and with each of the numbers given; then the same for streams. More than LIMIT times those
of one fails. A count is the same on any day but for a few in a million; how long it takes tells
`leat bench scale` itself.

    bench/linear.py [--build DIR] [-n MESSAGES] [N...]

SPDX-License-Identifier: MIT
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIMIT = 1.25
BURST = 16


def count(leat, what, number, messages):
    """Instructions a message."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", "--instr-atstart=no",
             f"--callgrind-out-file={folder}/out", leat, "bench", "scale", "--no-heap",
             "--stack", "quic", "--among", what, "-c", str(number), "--burst", str(BURST),
             "-n", str(messages), "--warm-up", str(messages // 4)],
            capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"linear: leat bench scale failed:\n{done.stdout}{done.stderr}")
    return int(re.search(r"Collected\s*:\s*(\d+)", done.stderr).group(1)) / messages


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build/release"))
    parser.add_argument("-n", "--messages", type=int, default=6400)
    parser.add_argument("numbers", nargs="*", type=int, default=[64])
    options = parser.parse_args()
    leat = os.path.join(options.build, "cli/leat")
    worse = 0
    for what in "connections", "streams":
        one = count(leat, what, 1, options.messages)
        print(f"{1:7,} of {what:12} {one:10,.0f} instructions a message")
        for number in options.numbers or [64]:
            many = count(leat, what, number, options.messages)
            print(f"{number:7,} of {what:12} {many:10,.0f} instructions a message, "
                  f"{many / one:.3f} times those of one")
            worse += many > LIMIT * one
    print(f"more than {LIMIT} times" if worse else f"none above {LIMIT} times")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())

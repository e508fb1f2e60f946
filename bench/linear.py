#!/usr/bin/env python3
"""bench/linear.py: whether a packet costs the same among many connections, and among many streams.

Instructions of `leat bench scale` are counted by callgrind, of the measured messages alone, with one
connection and with each of the numbers given; then the same for streams. More than INSTRUCTIONS times those
of one fails: a count is the same on any day but for a few in a million. With --rounds the processor time of a
message is measured as well, without callgrind, in rounds in which the numbers take turns; ratios to one are
taken within a round, and the target for their median is TIME.

    bench/linear.py [--build DIR] [-n MESSAGES] [--rounds N] [--doc FILE] [N...]

--doc replaces the section of that file which this program wrote before, or appends it.

SPDX-License-Identifier: MIT
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "bench", "peers"))
import record  # noqa: E402

MARK = "bench/linear.py"
INSTRUCTIONS, TIME = 1.25, 2.0
BURST = 16
TIMED = 320000  # messages: each of 10,000 connections has two bursts of them


def command(leat, what, number, messages):
    return [leat, "bench", "scale", "--no-heap", "--stack", "quic", "--among", what, "-c", str(number), "--burst",
            str(BURST), "-n", str(messages), "--warm-up", str(messages // 4)]


def count(leat, what, number, messages):
    """Instructions a message."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["valgrind", "--tool=callgrind", "--instr-atstart=no",
                               f"--callgrind-out-file={folder}/out", *command(leat, what, number, messages)],
                              capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"linear: leat bench scale failed:\n{done.stdout}{done.stderr}")
    return int(re.search(r"Collected\s*:\s*(\d+)", done.stderr).group(1)) / messages


def time(leat, what, number):
    """Nanoseconds of processor time a message, at both ends."""
    done = subprocess.run([*command(leat, what, number, TIMED), "--json"], stdout=subprocess.PIPE, text=True,
                          check=True)
    return json.loads(done.stdout)["results"][0]["cpu_ns_per_op"]


def rows_of(leat, what, options):
    """For each number: instructions and the times of all rounds."""
    numbers = [1, *(options.numbers or [64])]
    rows = {number: (count(leat, what, number, options.messages), []) for number in numbers}
    for turn in range(options.rounds):
        at = turn % len(numbers)
        for number in numbers[at:] + numbers[:at]:
            rows[number][1].append(time(leat, what, number))
    return rows


def report(found, options):
    lines = ["## Among many", "",
             f"`{MARK} --rounds {options.rounds} {' '.join(map(str, options.numbers))}`, {record.now()}, on "
             f"{record.machine()}; load average {os.getloadavg()[0]:.1f} at the end. Messages of 1,200 bytes in bursts "
             f"of {BURST}, each burst on the next connection, or each message on the next stream; both ends, QUIC alone. "
             f"Instructions by callgrind (target {INSTRUCTIONS} times one), processor time in {options.rounds} rounds in "
             f"turn, medians with the least and the most (target {TIME} times one).", "",
             "| among | instructions | to one | ns | to one |", "| --- | --- | --- | --- | --- |"]
    for what, rows in found.items():
        one, ones = rows[1]
        for number, (instructions, times) in rows.items():
            ratios = [a / b for a, b in zip(times, ones)]
            cells = ["", ""]
            if times:
                cells = [f"{statistics.median(each):,.{digits}f} ({min(each):,.{digits}f} to {max(each):,.{digits}f})"
                         for each, digits in ((times, 0), (ratios, 2))]
            lines.append(f"| {number:,} {what if number > 1 else what[:-1]} | {instructions:,.0f} | "
                         f"{instructions / one:.3f} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build/release"))
    parser.add_argument("-n", "--messages", type=int, default=6400)
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--doc")
    parser.add_argument("numbers", nargs="*", type=int, default=[64])
    options = parser.parse_args()
    leat = os.path.join(options.build, "cli/leat")
    found = {what: rows_of(leat, what, options) for what in ("connections", "streams")}
    text = report(found, options)
    print(text)
    if options.doc:
        record.write(options.doc, MARK, text)
    worse = [what for what, rows in found.items()
             if any(instructions > INSTRUCTIONS * rows[1][0] for instructions, _ in rows.values())]
    print(f"more than {INSTRUCTIONS} times the instructions: {', '.join(worse)}" if worse else
          f"none above {INSTRUCTIONS} times the instructions")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())

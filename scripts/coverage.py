#!/usr/bin/env python3
"""coverage.py BUILD [--least PERCENT] [--missing PART] [--parsers]: what the tests that ran in a build with
--coverage have reached of src/: lines and branches, by file and in all.

--least: fails when fewer lines of src/ were reached. --missing: lists the lines not reached, and the branches
not taken, of the files whose name has PART in it. Branches of assertions do not count: their other side is a
fault of leat's. --parsers: fails when a branch of a file in PARSERS was not taken, but for those that
coverage.txt has a reason for.

SPDX-License-Identifier: MIT
"""
import argparse
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Whatever reads bytes of a peer's that mean something.
PARSERS = re.compile(r"src/(base/cursor\.h|wire/(header\.c|frames_decode\.c|tparams(_decode)?\.c|varint\.h)"
                     r"|tls/(post|assemble|early)\.c|endpoint/addrtoken\.c|h3/fields\.c|roq/(wire|in)\.c"
                     r"|media/(rtp|rtcp|twcc_parse|ccfb_parse)\.c|media/twcc_iter\.h)$")
ASSERTION = re.compile(r"\bLEAT_(ASSERT|DCHECK)\b")


def gcov(path):
    done = subprocess.run(["gcov", "--json-format", "--stdout", "--branch-probabilities", path],
                          cwd=os.path.dirname(path), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


class File:
    def __init__(self, name):
        self.name = name
        self.lines = collections.Counter()
        self.branches = {}  # (line, index) -> count
        with open(os.path.join(ROOT, name), encoding="utf-8") as f:
            self.text = f.read().split("\n")

    def add(self, lines):
        # An inline function is in many objects, in some of them more than once: a line's branches are told
        # apart by their place in the line.
        for line in lines:
            number = line["line_number"]
            if number > len(self.text):
                sys.exit(f"coverage: {self.name} is not what was built")
            self.lines[number] += line["count"]
            if ASSERTION.search(self.text[number - 1]):
                continue
            for i, branch in enumerate(line["branches"]):
                key = (number, i)
                self.branches[key] = self.branches.get(key, 0) + branch["count"]

    def reached(self):
        return sum(1 for count in self.lines.values() if count)

    def taken(self):
        return sum(1 for count in self.branches.values() if count)

    def missing_branches(self):
        """Line numbers: of a line that was never reached it is the line that is missing."""
        return sorted({line for (line, _), count in self.branches.items() if not count})


def collect(build):
    objects = [os.path.join(folder, name) for folder, _, names in os.walk(build) for name in names
               if name.endswith(".gcda")]
    files = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for results in pool.map(gcov, objects):
            for result in results:
                for entry in result["files"]:
                    path = os.path.join(result["current_working_directory"], entry["file"])
                    name = os.path.relpath(os.path.realpath(path), ROOT)
                    if not name.startswith("src/"):
                        continue
                    if name not in files:
                        files[name] = File(name)
                    files[name].add(entry["lines"])
    return files


def percent(part, whole):
    return 100.0 * part / whole if whole else 100.0


def reasons():
    """Rows of coverage.txt: FILE, a piece of the line, and why its branch cannot be taken."""
    rows = []
    with open(os.path.join(ROOT, "scripts", "coverage.txt"), encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                name, piece = line.split("  #")[0].split(None, 1)
                rows.append((name, piece.strip()))
    return rows


def check_parsers(files):
    """How many branches of the parsers were not taken, each told of; rows that are not needed count, too."""
    rows, used, faults = reasons(), set(), 0
    for file in sorted(files.values(), key=lambda f: f.name):
        if not PARSERS.search(file.name):
            continue
        for number in file.missing_branches():
            text = file.text[number - 1]
            row = next((r for r in rows if r[0] == file.name and r[1] in text), None)
            if row:
                used.add(row)
            else:
                print(f"{file.name}:{number}: a branch was not taken: {text.strip()}")
                faults += 1
    for row in rows:
        if row not in used:
            print(f"coverage.txt: a row that is not needed: {row[0]} {row[1]}")
            faults += 1
    return faults


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--least", type=float, default=0)
    parser.add_argument("--missing")
    parser.add_argument("--parsers", action="store_true")
    args = parser.parse_args()
    files = collect(args.build)
    if not files:
        sys.exit("coverage: nothing was counted")
    for file in sorted(files.values(), key=lambda f: f.name):
        print(f"{file.name:40} {file.reached():5}/{len(file.lines):5} lines "
              f"{percent(file.reached(), len(file.lines)):6.1f} %  {file.taken():5}/{len(file.branches):5} "
              f"branches {percent(file.taken(), len(file.branches)):6.1f} %")
        if args.missing is not None and args.missing in file.name:
            for number in sorted(n for n, count in file.lines.items() if not count):
                print(f"    {number:5} {file.text[number - 1]}")
            for number in file.missing_branches():
                if file.lines[number]:
                    print(f"    {number:5} ? {file.text[number - 1]}")
    lines = sum(len(f.lines) for f in files.values())
    reached = sum(f.reached() for f in files.values())
    branches = sum(len(f.branches) for f in files.values())
    taken = sum(f.taken() for f in files.values())
    print(f"src/: {reached} of {lines} lines, {percent(reached, lines):.1f} %; {taken} of {branches} branches, "
          f"{percent(taken, branches):.1f} %")
    faults = check_parsers(files) if args.parsers else 0
    if percent(reached, lines) < args.least:
        print(f"coverage: fewer lines than {args.least} %")
        faults += 1
    sys.exit(1 if faults else 0)


main()

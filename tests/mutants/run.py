#!/usr/bin/env python3
"""Breaks rules of the RFCs and drafts in a copy of the library, one by one, and says whether a unit test notices.

    tests/mutants/run.py --work DIR [--all] [NAME...]

Each fault of rules.py and media.py names the programs one of which has to notice it. Only those are built again and
run; with --all, and where none is named, all unit tests that could notice are, one after the other until one does. NAME
is a fault's, or the beginning of what it breaks, as "9001" or "roq". Exits 1 when a fault was not noticed, could not be
tried, or when a test fails without a fault.
"""

import argparse
import os
import re
import subprocess
import sys

import media
import rules
from tree import Tree, run

SECONDS = 120  # a test that takes so long has noticed, too

# Which unit tests look at a folder of src/, nearest first.
READERS = {
    "base": "base mem wire conn",
    "cc": "cc conn",
    "conn": "conn endpoint",
    "crypto": "crypto conn",
    "endpoint": "endpoint conn",
    "io": "io",
    "media": "media roq",
    "recovery": "recovery conn endpoint",
    "roq": "roq",
    "stream": "stream conn",
    "tls": "tls conn endpoint",
    "wire": "wire conn endpoint",
}


def program(name):
    """tests/unit/... of a name as docs/RFC.md has it."""
    folder, name = name.split("/")
    return "tests/unit/%s/test_%s" % (folder, folder if name == folder else folder + "_" + name)


def programs(tree, folder):
    there = run(["ninja", "-C", tree.build, "-t", "targets", "all"]).stdout
    found = re.findall(r"^(tests/unit/%s/test_\w+): \S*EXECUTABLE_LINKER" % folder, there, re.M)
    return sorted(found)


def noticed_by(tree, path):
    """What a test program says: the names of the tests that fail, or None."""
    try:
        done = run([os.path.join(tree.build, path)], timeout=SECONDS, cwd=tree.build)
    except subprocess.TimeoutExpired:
        return ["no end"]
    if done.returncode == 0:
        return None
    failed = re.findall(r"\[  FAILED  \] (\w+)$", done.stdout + done.stderr, re.M)
    said = re.findall(r"(?:assertion failed|ERROR: |Assertion).*", done.stdout + done.stderr)
    return sorted(set(failed)) or said[:1] or ["exit %d" % done.returncode]


def judge(tree, rule, options):
    """(found, text)"""
    name, _, path, before, after, test = rule
    named = [program(t) for t in test.split()] if not options.all else []
    with tree.fault(path, before, after) as why:
        if why:
            return False, "NOT TRIED: " + why
        tests = named or [p for f in READERS[path.split("/")[1]].split() for p in programs(tree, f)]
        for at in tests:
            why = tree.make(at)
            if why:
                return False, "NOT TRIED: " + why
            failed = noticed_by(tree, at)
            if failed:
                return True, "%s: %s" % (os.path.basename(at), ", ".join(failed[:4]))
    return False, "NOT NOTICED"


def chosen(rule, names):
    return not names or any(rule[0] == n or rule[1].startswith(n) for n in names)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", required=True)
    parser.add_argument("--source", default=os.path.join(os.path.dirname(__file__), "../.."))
    parser.add_argument("--all", action="store_true", help="every unit test that could notice, not the named one")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    chosen_rules = [rule for rule in rules.RULES + media.RULES if chosen(rule, options.names)]
    tree = Tree(options.work, options.source, ["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS=-O1 -Wno-error -w"])
    found = wrong = 0

    for test in sorted({program(t) for rule in chosen_rules for t in rule[5].split()}):
        why = tree.make(test) or noticed_by(tree, test)
        if why:
            print("%s fails without a fault: %s" % (test, why), flush=True)
            wrong += 1
    for rule in chosen_rules:
        was_found, text = judge(tree, rule, options)
        found += was_found
        print("%-10s %-46s %s" % (rule[1], rule[0], text), flush=True)
    print("%d of %d noticed" % (found, len(chosen_rules)))
    return wrong > 0 or found < len(chosen_rules)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""instructions.py PROGRAM… [--record]: the hostile tests under callgrind: for each attack the instructions that
were spent, both sides together, for each byte that the victim received, held to instructions.json. An attack
whose cost grows with what came before it (a list walked again and again) is far above its row; a row is three
times what was measured, so that compilers and libraries may differ.

SPDX-License-Identifier: MIT
"""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

BUDGETS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "instructions.json")
MARGIN = 3.0


def measure(program):
    """{test: instructions a byte}, the most where a test counts more than once."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        done = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", program],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "LEAT_HOSTILE_COUNT": "2000"})
        if done.returncode != 0:
            sys.exit(f"{program} fails under callgrind:\n{done.stdout[-3000:]}{done.stderr[-2000:]}")
        received = [(name, int(n)) for name, n in re.findall(r"^counted (\w+) (\d+)$", done.stdout, re.M)]
        spent = []
        for number in range(1, len(glob.glob(out + ".*")) + 1):
            with open(f"{out}.{number}", encoding="utf-8") as f:
                text = f.read()
            name = re.search(r"^desc: Trigger: Client Request: (\w+)", text, re.M).group(1)
            spent.append((name, int(re.search(r"^(?:totals|summary): (\d+)", text, re.M).group(1))))
    if [name for name, _ in received] != [name for name, _ in spent] or not spent:
        sys.exit(f"{program}: counts of {len(spent)} attacks for {len(received)}: was it built without "
                 "valgrind/callgrind.h?")
    result = {}
    for (name, instructions), (_, count) in zip(spent, received):
        result[name] = max(result.get(name, 0), instructions / count)
    return result


def main():
    programs = [arg for arg in sys.argv[1:] if arg != "--record"]
    measured = {}
    for program in programs:
        measured.update(measure(program))
    if "--record" in sys.argv:
        with open(BUDGETS, "w", encoding="utf-8") as f:
            json.dump({name: round(n * MARGIN, 1) for name, n in sorted(measured.items())}, f, indent=4)
            f.write("\n")
    with open(BUDGETS, encoding="utf-8") as f:
        budgets = json.load(f)
    failed = 0
    for name in sorted(measured.keys() | budgets.keys()):
        if name not in measured or name not in budgets:
            print(f"FAIL {name}: " + ("has no budget" if name in measured else "was not measured"))
            failed += 1
        elif measured[name] > budgets[name]:
            print(f"FAIL {name}: {measured[name]:.1f} instructions a byte, not {budgets[name]} at most")
            failed += 1
        else:
            print(f"ok   {name}: {measured[name]:.1f} instructions a byte, {budgets[name]} at most")
    sys.exit(1 if failed else 0)


main()

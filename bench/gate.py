#!/usr/bin/env python3
"""bench/gate.py: what the tree costs, held to what bench/gate.json says it may: `make bench-gate`.

Instructions are counted by callgrind over runs of leat-sim, which follow from their seeds down to the
last byte, so that a count is the same on any day and a few per cent are no noise. What it sees is the
path for AVX2: valgrind has neither SHA-NI nor AVX-512, so hashing weighs more than it does and packet
protection is not the fastest. More than LIMIT per cent above the record fails; so does any rise of the
heap calls of leat's own that `leat bench` counts.

Counts are those of one compiler, one set of libraries and one processor. Where these are not the record's,
the gate says so and judges the heap calls alone; --base REF then builds REF beside the tree and compares
with that instead. As long as there is no release, the record stands for the last one; it is written anew when a
release is tagged, and --base TAG compares with the tag itself.

    bench/gate.py [--build DIR] [--record] [--base REF]

SPDX-License-Identifier: MIT
"""
import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RECORD = os.path.join(ROOT, "bench", "gate.json")
LIMIT = 3.0  # per cent
NEVER = "4000000000"  # steps between walks of all containers: they are no part of it

# What leat-sim runs, clients and a server in one process. Plans are spelt out, so that what it draws from
# a seed may change.
RUNS = {
    "bulk": ["--plain", "--size", "6000000", "--plan", "delay_us=1000"],
    "bulk, 2 % lost": ["--plain", "--size", "3000000", "--plan",
                       "loss=20000,delay_us=5000,reorder=10000,reorder_delay_us=5000"],
    "streams and datagrams": ["--plain", "--plan",
                              "bidi=100,uni=50,other_size=8192,datagrams=500,delay_us=2000"],
    "handshakes": ["--plain", "--size", "1000", "--plan", "clients=8,stagger_us=1000,other_size=100"],
}
# Works of `leat bench` whose own heap calls are counted.
HEAP = {
    "messages": ["transfer", "-n", "20000"],
    "streams": ["streams", "-n", "5000"],
    "handshakes": ["handshake", "-n", "30"],
}


def output(*command, env=None):
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    if done.returncode != 0:
        sys.exit(f"gate: {' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done


def machine(build):
    """Who made the counts: the compiler and the libraries that the instructions are in."""
    with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as cache:
        compiler = re.search(r"CMAKE_C_COMPILER:\w+=(.*)", cache.read()).group(1)
    libs = output("ldd", os.path.join(build, "tests/sim/leat-sim")).stdout
    paths = sorted({os.path.realpath(path) for path in re.findall(r"=> (/\S+)", libs)})
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as info:
        processor = re.findall(r"^(?:vendor_id|cpu family|model|model name)\s*:\s*(.*)", info.read(), re.M)[:4]
    return {"processor": " ".join(processor),  # by which the libraries choose their code
            "compiler": output(compiler, "--version").stdout.splitlines()[0],
            "valgrind": output("valgrind", "--version").stdout.strip(),
            "libraries": [os.path.basename(path) for path in paths]}


def instructions(build, args):
    with tempfile.TemporaryDirectory() as folder:
        env = {"PATH": os.environ["PATH"], "LC_ALL": "C"}  # what is on the stack is part of it
        err = output("valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out",
                     "--toggle-collect=leat_sim_run*",  # reading certificates, ahead of it, is GnuTLS's work
                     os.path.join(build, "tests/sim/leat-sim"), *args, "--check", NEVER,
                     "--jobs", "1", env=env).stderr
        # It runs the seed in a child; the parent counts nothing.
        return sum(int(n) for n in re.findall(r"Collected\s*:\s*(\d+)", err))


def heap_calls(build, args):
    report = json.loads(output(os.path.join(build, "cli/leat"), "bench", *args, "--json").stdout)
    counts = [row["allocs_per_op"] for row in report["results"]]
    if not counts or not all(counts):
        sys.exit(f"gate: heap calls of leat bench {' '.join(args)} were not counted")
    return sum(count["leat"] for count in counts)


def measure(build):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        counts = dict(zip(RUNS, pool.map(lambda args: instructions(build, args), RUNS.values())))
    return {"made by": machine(build), "instructions": counts,
            "heap calls an operation": {name: heap_calls(build, args)
                                        for name, args in HEAP.items()}}


def build_ref(ref, folder):
    """Builds another commit as the tree is built; returns its build folder."""
    tree, build = os.path.join(folder, "tree"), os.path.join(folder, "build")
    output("git", "-C", ROOT, "worktree", "add", "--detach", tree, ref)
    try:
        output("cmake", "-S", tree, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release")
        output("ninja", "-C", build, "leat", "leat-sim", "alloccount")
        return measure(build)
    finally:
        output("git", "-C", ROOT, "worktree", "remove", "--force", tree)


def compare(base, now):
    """Prints both; returns what is worse."""
    worse = []
    comparable = base["made by"] == now["made by"]
    if not comparable:
        print("the record was made with other tools, so its instruction counts say nothing here:")
        for what, value in now["made by"].items():
            if base["made by"].get(what) != value:
                print(f"  {what}: {value}, recorded: {base['made by'].get(what)}")
    for name, count in now["instructions"].items():
        before = base["instructions"].get(name)
        change = (count / before - 1) * 100 if before else 0.0
        print(f"{name:40} {count:15,} instructions {change:+7.2f} %")
        if comparable and change > LIMIT:
            worse.append(f"{name}: {change:+.2f} % instructions")
    for name, calls in now["heap calls an operation"].items():
        before = base["heap calls an operation"].get(name, 0)
        print(f"{name:40} {calls:15.3f} heap calls of leat's own, recorded {before:.3f}")
        if calls > before:
            worse.append(f"{name}: {calls} heap calls an operation instead of {before}")
    return worse


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build/release"))
    parser.add_argument("--record", action="store_true", help="write the record anew")
    parser.add_argument("--base", metavar="REF", help="build REF and compare with that")
    options = parser.parse_args()
    now = measure(options.build)
    if options.record:
        with open(RECORD, "w", encoding="utf-8") as record:
            json.dump(now, record, indent=4)
            record.write("\n")
        print(json.dumps(now, indent=4))
        return 0
    if options.base:
        with tempfile.TemporaryDirectory() as folder:
            base = build_ref(options.base, folder)
    else:
        with open(RECORD, encoding="utf-8") as record:
            base = json.load(record)
    worse = compare(base, now)
    for line in worse:
        print(f"worse: {line}")
    print("the gate is shut" if worse else "the gate is open")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""run.py: the published changes that leat grew out of, each taken back and compared with leat as it is.

    bench/reproduce/run.py [--rounds N] [--build FOLDER] [--work NAME] [--doc FILE]

`leat compare` runs leat and a variant of it (see CMakeLists.txt here) in rotating order with the same
`leat bench` work. Time is compared with the counting of heap calls off; the counts come from one more
run of each. Writes docs/SEEDS.md, or what --doc names ("-": standard output), the whole of it: nothing
in there is written by hand. --work measures one change alone and replaces its section of that file.

SPDX-License-Identifier: MIT
"""
import argparse
import json
import os
import platform
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TIME = "median_ns"  # of the rounds within a run: what a neighbour does in between falls away


class Change:
    """One published change. pairs: (title, base, old, bench arguments, rows by name: what they are)."""

    def __init__(self, title, where, what, published, here, pairs):
        self.title, self.where, self.what = title, where, what
        self.published, self.here, self.pairs = published, here, pairs


QUEUE = ["queue"]
QUEUE_ROWS = ["64 drained for a batch", "batch of 64 handed over"]
MESSAGES = ["transfer", "--size", "1200", "--count", "40000"]

CHANGES = {
    "queue": Change(
        "A queue that keeps its capacity",
        "swift-network (QUIC in Swift)",
        "A queue drained for a batch keeps its room, and one that is handed a batch adopts the incoming "
        "storage only when it would otherwise have to grow. Before, storage always moved along with the "
        "elements, and the next element had to find new.",
        "24.37 → 23.38 allocations a message of 1,200 bytes",
        "`queue.c` puts the old way back. In leat a queue's storage comes from the context's memory, "
        "which keeps what is let go, so the old way costs no heap call; to see the change as it was, "
        "two more variants take storage from malloc(), one with each way.",
        [("as leat is: storage from the context's memory", "leat", "leat-queue", QUEUE, QUEUE_ROWS),
         ("storage from malloc(), as where the change was made", "leat-queue-heap-kept",
          "leat-queue-heap", QUEUE, QUEUE_ROWS),
         ("messages of 1,200 bytes through both ends, storage from malloc()", "leat-queue-heap-kept",
          "leat-queue-heap", MESSAGES, None)]),
    "tasks": Change(
        "Tasks without boxes",
        "swift-network",
        "A task scheduled on a serial context no longer copies its closure to the heap, nor a box "
        "around it. leat's tasks are intrusive: the caller embeds them, and there is nothing to take.",
        "4 → 2 allocations a task; with the queue's change 22.14 a message, 6,187.6 → 6,131.8 a transfer "
        "of 500 KB, 1,947.4 → 1,941.5 a handshake, 111.8 → 106.9 a stream",
        "`tasks.c` takes two pieces of the heap for each task, a copied closure and a box.",
        [("tasks alone", "leat", "leat-tasks", ["tasks", "--count", "200000"],
          ["owner, in bursts of 256", "owner, by post", "each scheduling itself",
           "another thread, bursts"]),
         ("messages of 1,200 bytes through both ends", "leat", "leat-tasks", MESSAGES, None)]),
    "slab": Change(
        "Slabs of 64 KiB",
        "Node.js, PR 63597",
        "The pool that small buffers are cut from grew from 8 to 64 KiB. A request for half a slab or "
        "more gets memory of its own, so 4 KiB used to bypass the pool.",
        "files read, operations a second, 8 workers: +10 % at 4 KiB, +26 % at 8 KiB, +23 % at 16 KiB, "
        "none worse at 64 KiB and 1 MiB; for 56 KiB of memory a realm",
        "`slab.c` makes 8 KiB the default of `leat_mem_settings`. Unlike Node's, leat's memory keeps the "
        "blocks of large buffers for the next, so what a bypass costs is looking for one of those.",
        [(f"buffers of {size >> 10} KiB, taken and released", "leat", "leat-slab",
          ["buffers", "--size", str(size), "--count", "50000"], None)
         for size in (1024, 4096, 8192, 16384, 65536)] +
        [(f"files of {size >> 10} KiB read by 8 workers", "leat", "leat-slab",
          ["readfile", "--size", str(size), "--workers", "8", "--count", "8000"], [f"{size >> 10}k, default slabs"])
         for size in (4096, 8192, 16384, 65536)]),
    "tparams": Change(
        "Transport parameters in one pass",
        "quic-go, PR 3531",
        "Transport parameters are written straight into one buffer that is large enough, where each "
        "varint was a slice of its own, appended to a buffer that grew.",
        "368 → 196 ns, 14 → 1 allocations, 273 → 256 bytes a set",
        "`tparams.c` appends piece by piece to a growing buffer, varints of more than a byte through a "
        "piece of the heap. The bytes written are the same.",
        [("sets as leat sends them", "leat", "leat-tparams", ["tparams", "--count", "250000"],
          ["encode, client's", "encode, server's"])]),
    "twcc": Change(
        "A feedback recorder that does not allocate",
        "pion/interceptor, PR 426",
        "Recording a packet's arrival took a piece of the heap each time, because the address of a local "
        "was kept; building feedback took one for each delta.",
        "record 21.1 → 6.9 ns, 1 → 0 allocations; record 100 packets and build the feedback 4,546 → "
        "2,270 ns, 322 → 21 allocations",
        "`twcc.c` takes and releases a piece of the heap for each packet recorded and for each delta of "
        "a feedback. What is recorded and written is the same. One operation is a packet.",
        [("arrivals", "leat", "leat-twcc", ["twcc"], ["record", "record, and feedback every 100"])]),
}


class Runner:
    def __init__(self, args):
        self.rounds = args.rounds
        self.build = os.path.abspath(args.build)
        self.counts = {}

    def path(self, name):
        folder = "cli" if name == "leat" else "reproduce"
        path = os.path.join(self.build, folder, name)
        if not os.access(path, os.X_OK):
            sys.exit(f"run.py: {path} is not there: run 'make reproduce'")
        return path

    def compare(self, base, old, work):
        command = [self.path("leat"), "compare", "--quiet", "--json", "--rounds", str(self.rounds),
                   f"base={self.path(base)}", f"old={self.path(old)}", "--", "bench", *work,
                   "--no-heap", "--json"]
        # As the counter of heap calls has it: room for the allocators that `buffers` loads.
        env = dict(os.environ, GLIBC_TUNABLES="glibc.rtld.optional_static_tls=16384")
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=env)
        return {result["metric"]: result for result in json.loads(done.stdout)["results"]}

    def heap_calls(self, name, work):
        """By row, leat's own calls an operation. They do not depend on the time: one run."""
        key = (name, *work)
        if key not in self.counts:
            done = subprocess.run([self.path(name), "bench", *work, "--json"],
                                  stdout=subprocess.PIPE, check=True)
            rows = json.loads(done.stdout)["results"]
            if any(row.get("allocs_per_op", 1) is None for row in rows):
                sys.exit("run.py: heap calls were not counted: is liballoccount.so built?")
            self.counts[key] = {row["name"]: row["allocs_per_op"]["leat"] for row in rows
                                if "allocs_per_op" in row}
        return self.counts[key]


def number(value):
    if value is None:
        return "–"
    if value == 0:
        return "0"
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def percent(ratio):
    """How a ratio is told: 1.25 as +25 %."""
    if ratio >= 3:
        return f"{ratio:.1f} times"
    return f"{(ratio - 1) * 100:+.1f} %"


def verdict(result):
    """From the old way's view to the reader's: base is leat as it is."""
    return {"worse": "leat's way is faster", "better": "the old way is faster"}.get(
        result["verdict"], "not beyond noise")


def table_rows(runner, base, old, work, rows):
    results = runner.compare(base, old, work)
    before, after = runner.heap_calls(old, work), runner.heap_calls(base, work)
    lines = []
    for row in rows or list(after):
        key = f"results.{row}.{TIME}"
        if key not in results:
            key = f"results.{row}.cpu_ns_per_op"
        r = results[key]
        if r["noise"] is None:
            sys.exit(f"run.py: {runner.rounds} rounds are too few to tell the noise: take 7 or more")
        lines.append(f"| {row} | {number(r['value'])} → {number(r['base_value'])} ns | "
                     f"{percent(r['median'])} [{percent(r['low'])}, {percent(r['high'])}] | "
                     f"{(r['noise']) * 100:.1f} % | {r['rounds'] - r['better']} of {r['rounds']} | "
                     f"{verdict(r)} | {number(before[row])} → {number(after[row])} |")
    return lines


def section(runner, change):
    began, load = time.strftime("%Y-%m-%d %H:%M"), os.getloadavg()[0]
    lines = []
    for title, base, old, work, rows in change.pairs:
        print(f"run.py: {change.title}: {title}", file=sys.stderr, flush=True)
        lines += [f"{title[0].upper()}{title[1:]}: `leat bench {' '.join(work)}`, {old} against {base}.", "",
                  "| row | old → new | old against new, interval | noise | slower in | verdict | "
                  "heap calls, old → new |",
                  "| --- | --- | --- | --- | --- | --- | --- |",
                  *table_rows(runner, base, old, work, rows), ""]
    return [f"## {change.title}", "",
            f"{change.where}. {change.what}", "",
            f"- Published: {change.published}.",
            f"- Here: {change.here}",
            f"- Measured {began}, {runner.rounds} rounds; load average {load:.1f} when it began, "
            f"{os.getloadavg()[0]:.1f} when it ended, on {os.cpu_count()} processors.", "", *lines]


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        for line in f:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


HEAD = """# The five changes, reproduced

leat grew out of five published changes to other people's code. Each is taken back here in one place,
`bench/reproduce/`, and the old way is compared with leat as it is. `make reproduce` builds the
variants, runs this and writes this file; `bench/reproduce/run.py --work NAME` does one change again.

- Machine: {machine}.
- `leat compare --rounds N base=NEW old=OLD -- bench WORK --no-heap --json`: builds in rotating order,
  paired by round. Time is the median round within a run, or processor time for work that is not done
  in rounds; the value is the median over the runs.
- The ratio is the old way's to the new one's of the same round, median and interval at 95 %; "noise" is
  how far the base strays from itself, run twice a round. A verdict needs both: 1 outside the interval,
  and the ratio beyond the noise. A load average above the number of processors means that others were
  at work on the machine, and that the noise is theirs.
- Heap calls are leat's own, an operation, from a run of each with them counted
  (`leat bench WORK --json`).
"""


def machine():
    return (f"{os.cpu_count()} × {processor()}, {platform.system()} {platform.release()}, "
            f"{platform.freedesktop_os_release().get('PRETTY_NAME', 'unknown system')}")


NOISE = """"Not beyond noise" says what is known: that a difference, if there is one, is smaller than this machine could tell
in this run; not that there is none. A machine that changes its speed within minutes with nobody else at work on it
(the one of the records up to 2026-12 does, by up to two times) shows in wide noise.
"""


def verdicts(sections):
    """The last section: what the tables above say, row by row."""
    rows = [line.split(" | ") for text in sections for line in text.split("\n")
            if line.startswith("| ") and " → " in line and " ns | " in line]
    counts = {}
    for row in rows:
        counts.setdefault(row[5], []).append(float(row[3].split()[0]))
    lines = ["## About this record", "", f"Of {len(rows)} rows:", ""]
    for what, noise in sorted(counts.items(), key=lambda item: -len(item[1])):
        noise.sort()
        lines.append(f"- {what}: {len(noise)}, with a noise of {noise[0]:.1f} to {noise[-1]:.1f} % "
                     f"(median {noise[len(noise) // 2]:.1f} %).")
    return "\n".join([*lines, "", NOISE])


def read_sections(doc):
    """By title, with the line of the title; what comes before the first is left out."""
    if doc == "-" or not os.path.exists(doc):
        return {}
    with open(doc, encoding="utf-8") as f:
        parts = ("\n" + f.read()).split("\n## ")[1:]
    return {part.split("\n", 1)[0]: "## " + part.rstrip("\n") + "\n" for part in parts}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--build", default=os.path.join(ROOT, "build/release"))
    parser.add_argument("--work", choices=list(CHANGES))
    parser.add_argument("--doc", default=os.path.join(ROOT, "docs/SEEDS.md"))
    args = parser.parse_args()
    runner = Runner(args)
    for name in [args.work] if args.work else list(CHANGES):
        text = "\n".join(section(runner, CHANGES[name]))
        sections = read_sections(args.doc)
        sections[CHANGES[name].title] = text
        known = [sections[c.title] for c in CHANGES.values() if c.title in sections]
        text = "\n".join([HEAD.format(machine=machine()), *known, verdicts(known)])
        if args.doc == "-":
            print(text)
            continue
        with open(args.doc, "w", encoding="utf-8") as f:
            f.write(text)


if __name__ == "__main__":
    main()

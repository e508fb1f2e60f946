#!/usr/bin/env python3
"""leat allocs as its users meet it: exact counts by stack of a program that is known, two runs, files, bad usage.

usage: test_allocs_command.py LEAT PROGRAM (tests/cli/allocating.c)
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

LEAT, PROGRAM = None, None


class Allocs(unittest.TestCase):
    def run_allocs(self, *args, env=None):
        return subprocess.run([LEAT, "allocs", *args], capture_output=True, text=True, timeout=120,
                              check=False, env=dict(os.environ, **(env or {})))

    def result(self, *args):
        done = self.run_allocs("--json", "--top", "1000", *args)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def by_function(self, result, name):
        return sum(s["allocations"] for s in result["stacks"] if name in s["callers"])

    def test_counts_are_exact_by_kind_and_by_caller(self):
        # The program: per operation one malloc of 100 from makes_one(), and two callocs, a realloc, a
        # posix_memalign and an aligned_alloc from makes_many(); all freed.
        result = self.result("--", PROGRAM, "1000")
        self.assertEqual(self.by_function(result, "makes_one"), 1000)
        self.assertEqual(self.by_function(result, "makes_many"), 5000)
        self.assertGreaterEqual(result["calloc"], 2000)
        self.assertEqual(result["posix_memalign"], 1000)
        self.assertEqual(result["aligned_alloc"], 1000)
        self.assertGreaterEqual(result["free"], 5000)
        self.assertEqual(result["lost"], 0)
        one = [s for s in result["stacks"] if s["callers"][0] == "makes_one"]
        self.assertEqual(sum(s["bytes"] for s in one), 100000)

    def test_per_operation_and_by_two_runs(self):
        per = self.result("--per", "1000", "--", PROGRAM, "1000")
        self.assertAlmostEqual(self.by_function(per, "makes_many"), 5)
        # Start-up costs drop out between two runs.
        two = self.result("--from", "100", "--to", "1100", "--", PROGRAM, "{}")
        self.assertEqual(two["allocations"], 6)
        self.assertEqual(self.by_function(two, "makes_one"), 1)
        self.assertEqual(self.by_function(two, "at_start"), 0)

    def test_many_threads_lose_nothing(self):
        result = self.result("--", PROGRAM, "2000", "threads")
        self.assertEqual(self.by_function(result, "makes_one"), 8 * 2000)
        self.assertEqual(self.by_function(result, "makes_many"), 8 * 5 * 2000)

    def test_marks_and_a_part_of_the_run(self):
        result = self.result("--paused", "--", PROGRAM, "10", "part")
        self.assertEqual(self.by_function(result, "makes_one"), 10)
        self.assertEqual(self.by_function(result, "at_start"), 0)
        self.assertEqual([m["name"] for m in result["marks"]], ["begun", "done"])
        self.assertEqual(result["marks"][1]["allocations"] - result["marks"][0]["allocations"], 60)

    def test_folded_stacks_and_a_flame_graph(self):
        with tempfile.TemporaryDirectory(prefix="leat-allocs-") as folder:
            folded, svg = os.path.join(folder, "folded"), os.path.join(folder, "svg")
            done = self.run_allocs("--folded", folded, "--svg", svg, "--", PROGRAM, "50")
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(folded, encoding="utf-8") as file:
                lines = [re.fullmatch(r"(.+) (\d+)", line.rstrip("\n")) for line in file]
            self.assertTrue(all(lines))
            self.assertEqual(sum(int(m[2]) for m in lines if "makes_one" in m[1].split(";")), 50)
            self.assertTrue(any(m[1].split(";")[-1] == "makes_one" for m in lines))
            root = xml.etree.ElementTree.parse(svg).getroot()
            titles = [e.text for e in root.iter() if e.tag.endswith("title")]
            self.assertTrue(any(t.startswith("makes_many: 250 allocations") for t in titles), titles)

    def test_a_program_without_heap_calls_is_counted(self):
        done = self.run_allocs("--", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("allocations: ", done.stdout)

    def test_an_interrupted_program_tells_what_it_has(self):
        """A terminal sends Ctrl-C to the whole process group, of which leat is."""
        for how, number in (("int", 2), ("term", 15)):
            done = subprocess.run([LEAT, "allocs", "--json", "--", PROGRAM, "10", how], check=False,
                                  capture_output=True, text=True, timeout=120, start_new_session=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.by_function(json.loads(done.stdout), "makes_one"), 10)
            self.assertIn(f"(signal {number})", done.stderr)

    def test_two_runs_of_which_one_was_cut_short_have_no_difference(self):
        done = self.run_allocs("--from", "1", "--to", "2", "--", PROGRAM, "{}", "term")
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, "")

    def test_a_program_that_ends_by_exit_group_is_counted(self):
        result = self.result("--", "/bin/sh", "-c", "i=0; while [ $i -lt 50 ]; do i=$((i+1)); done")
        self.assertGreater(result["allocations"], 50)

    def test_a_program_that_fails_is_told_and_counted(self):
        done = self.run_allocs("--", PROGRAM, "5", "fail")
        self.assertEqual(done.returncode, 0)
        self.assertIn("the program ended badly (code 3)", done.stderr)
        self.assertIn("allocations", done.stdout)

    def test_bad_usage(self):
        for args in ([], ["--"], ["/bin/true"], ["--to", "1", "--from", "2", "--", "/bin/true"],
                     ["--per", "0", "--", "/bin/true"], ["--nonsense", "--", "/bin/true"]):
            done = self.run_allocs(*args)
            self.assertEqual(done.returncode, 2, args)
            self.assertTrue(done.stderr.startswith("leat: "), args)
        done = self.run_allocs("--", "/nowhere/x")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot run /nowhere/x", done.stderr)
        done = self.run_allocs("--svg", "/nowhere/x.svg", "--", PROGRAM, "1")
        self.assertEqual(done.returncode, 5)


if __name__ == "__main__":
    LEAT, PROGRAM = sys.argv.pop(1), sys.argv.pop(1)
    unittest.main(verbosity=2)

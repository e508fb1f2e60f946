#!/usr/bin/env python3
"""leat compare as its users meet it: rotating order, verdicts, JSON, picture, interruption, bad usage.

usage: test_compare_command.py LEAT
"""
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

LEAT = None


class Compare(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="leat-compare-")
        self.log = os.path.join(self.folder.name, "log")

    def tearDown(self):
        self.folder.cleanup()

    def program(self, name, body):
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="ascii") as file:
            file.write(f"#!/bin/sh\necho {name} \"$*\" >> {self.log}\n{body}\n")
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        return path

    def bench(self, name, ns):
        return self.program(name, f"echo '{{\"work\": {{\"ns_per_op\": {ns}, \"allocs\": 0}}}}'")

    def run_compare(self, *args):
        return subprocess.run([LEAT, "compare", *args], capture_output=True, text=True, timeout=120,
                              check=False)

    def runs(self):
        with open(self.log, encoding="ascii") as file:
            return [line.split() for line in file]

    def test_builds_run_in_rotating_order_with_the_arguments(self):
        a, b = self.bench("a", 100), self.bench("b", 100)
        done = self.run_compare("-n", "4", f"cand={b}", f"base={a}", "--", "x", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        names = "".join(run[0] for run in self.runs())
        self.assertEqual(names, "aba" + "baa" + "aab" + "aba")
        self.assertTrue(all(run[1:] == ["x", "--json"] for run in self.runs()))
        self.assertIn("too few for a verdict", done.stdout)

    def test_verdicts_in_json_and_a_picture(self):
        base, fast, slow = self.bench("base", 100), self.bench("fast", 90), self.bench("slow", 120)
        svg = os.path.join(self.folder.name, "out.svg")
        done = self.run_compare("--json", "--svg", svg, f"base={base}", f"fast={fast}",
                                f"slow={slow}", "--")
        self.assertEqual(done.returncode, 0, done.stderr)
        results = {(r["build"], r["metric"]): r for r in json.loads(done.stdout)["results"]}
        self.assertEqual(results["fast", "work.ns_per_op"]["verdict"], "better")
        self.assertAlmostEqual(results["fast", "work.ns_per_op"]["median"], 0.9)
        self.assertEqual(results["fast", "work.ns_per_op"]["better"], 9)
        self.assertEqual(results["slow", "work.ns_per_op"]["verdict"], "worse")
        self.assertEqual(results["slow", "work.allocs"]["verdict"], "no difference seen")
        self.assertEqual(results["slow", "work.allocs"]["median"], 1)
        self.assertIn(("slow", "cpu_seconds"), results)
        self.assertTrue(xml.etree.ElementTree.parse(svg).getroot().tag.endswith("svg"))

    def test_figures_and_a_choice_of_metrics(self):
        base = self.bench("base", 100)
        cand = self.program("cand", """echo '{"work": {"ns_per_op": 50, "allocs": 2}}'""")
        done = self.run_compare("-m", "work.*", f"base={base}", f"cand={cand}", "--")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [line.split() for line in done.stdout.splitlines()[2:]]
        self.assertEqual([line[:5] for line in lines],
                         [["cand", "work.ns_per_op", "100", "50", "0.5000"],
                          ["cand", "work.allocs", "0", "2", "inf"]])
        self.assertEqual([line[-1] for line in lines], ["better", "worse"])
        done = self.run_compare("-m", "*.allocs", "--json", f"base={base}", f"cand={cand}", "--")
        (result,) = json.loads(done.stdout)["results"]
        self.assertEqual((result["base_value"], result["value"], result["median"]), (0, 2, None))
        self.assertEqual(result["verdict"], "worse")

    def test_any_command_with_time_alone(self):
        done = self.run_compare("--time", "-n", "6", "base=/bin/true", "other=/bin/true", "--")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("wall_seconds", done.stdout)
        self.assertIn("no difference seen", done.stdout)

    def test_an_interrupted_run_prints_what_it_has(self):
        base = self.bench("base", 100)
        last = os.path.join(self.folder.name, "last")
        os.mkfifo(last)
        # The 22nd run (round 8) tells that it is there, and waits to be interrupted.
        slow = self.program("cand", f"""echo '{{"work": {{"ns_per_op": 50}}}}'
[ $(grep -c cand {self.log}) -lt 8 ] || {{ echo > {last}; exec sleep 60; }}""")
        child = subprocess.Popen([LEAT, "compare", "-n", "20", f"base={base}", f"cand={slow}", "--"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 start_new_session=True)
        with open(last, encoding="ascii") as file:
            file.read()
        os.killpg(child.pid, signal.SIGINT)
        out, _ = child.communicate(timeout=60)
        self.assertEqual(child.returncode, 130)
        self.assertIn("7 of 20 rounds", out)
        self.assertIn("better", out)

    def test_bad_usage(self):
        good = self.bench("good", 1)
        for args in ([], ["base=/bin/true"], ["a=/bin/true", "b=/bin/true"], ["base"],
                     ["base=/bin/true", "base=/bin/true"], ["--rounds", "0", "base=x", "a=x"],
                     ["--nonsense"], ["=x", "base=x"]):
            done = self.run_compare(*args, "--")
            self.assertEqual(done.returncode, 2, args)
            self.assertTrue(done.stderr.startswith("leat: "), args)
        missing = self.run_compare(f"base={good}", "cand=/nowhere/x", "--")
        self.assertEqual(missing.returncode, 1)
        self.assertIn("cannot run /nowhere/x", missing.stderr)
        failing = self.run_compare(f"base={good}", "cand=/bin/false", "--")
        self.assertEqual(failing.returncode, 1)
        self.assertIn("ended with code 1", failing.stderr)
        silent = self.run_compare(f"base={good}", "cand=/bin/true", "--")
        self.assertEqual(silent.returncode, 1)
        self.assertIn("printed no JSON", silent.stderr)


if __name__ == "__main__":
    LEAT = sys.argv.pop(1)
    unittest.main(verbosity=2)

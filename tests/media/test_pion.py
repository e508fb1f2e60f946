#!/usr/bin/env python3
"""RFC 8888: pion's rtcp package reads leat's reports and leat reads pion's.

    test_pion.py CCFB_LINES

SPDX-License-Identifier: MIT
"""
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
LINES = os.path.abspath(sys.argv.pop(1))
COUNT = 2000


def run(*command, given=None):
    return subprocess.run(command, input=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=120)


class Pion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.pion = os.path.join(cls.folder.name, "pion_ccfb")
        subprocess.run(["go", "build", "-o", cls.pion, os.path.join(HERE, "pion_ccfb.go")], check=True,
                       env={**os.environ, "GO111MODULE": "off", "GOPATH": "/usr/share/gocode",
                            "GOCACHE": os.path.join(cls.folder.name, "cache")})

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def check_both_read_the_same(self, made, blocks_least):
        self.assertEqual(made.returncode, 0, made.stderr)
        ours = run(LINES, "read", given=made.stdout)
        theirs = run(self.pion, "read", given=made.stdout)
        self.assertEqual(ours.returncode, 0, ours.stderr)
        self.assertEqual(theirs.returncode, 0, theirs.stderr)
        self.assertEqual(ours.stdout.splitlines(), theirs.stdout.splitlines())
        self.assertEqual(len(ours.stdout.splitlines()), COUNT)
        self.assertGreater(ours.stdout.count("|"), blocks_least)

    def test_pion_reads_leats_reports(self):
        self.check_both_read_the_same(run(LINES, "make", "1", str(COUNT)), 20 * COUNT)

    def test_leat_reads_pions_reports(self):
        self.check_both_read_the_same(run(self.pion, "make", "1", str(COUNT)), 20 * COUNT)

    def test_the_erratum_is_what_lies_between_them(self):
        """Without the correction this pion does not read what the RFC's erratum 8166 asks for. When this test
        fails, Debian's pion has caught up, and the correction goes."""
        made = run(LINES, "make", "2", "20").stdout
        old = run(self.pion, "old", given=made)
        self.assertNotEqual(old.stdout, run(LINES, "read", given=made).stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)

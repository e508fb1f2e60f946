#!/usr/bin/env python3
"""Transport-wide feedback of every kind, as leat writes it, read by tshark: the same numbers and deltas as leat
reads, and as were recorded.

    test_tshark.py LEAT TWCC_LINES

SPDX-License-Identifier: MIT
"""
import os
import subprocess
import sys
import tempfile
import unittest

from captures import PATIENCE, dump, tshark_reads, twcc_of, write_pcap

LEAT, LINES = (os.path.abspath(a) for a in sys.argv[1:3])
del sys.argv[1:3]
COUNT = 400
PORT = 5005


class Tshark(unittest.TestCase):
    def test_tshark_reads_what_leat_wrote(self):
        done = subprocess.run([LINES, "1", str(COUNT)], stdout=subprocess.PIPE, check=True, text=True,
                              timeout=PATIENCE)
        packets = [bytes.fromhex(line) for line in done.stdout.split()]
        self.assertGreaterEqual(len(packets), COUNT)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "feedback.pcap")
            write_pcap(path, packets, PORT)
            theirs = tshark_reads(path, PORT)
            ours = [(p["base"], p["statuses"], p["reference"], p["received"])
                    for p in twcc_of(dump(LEAT, path))]
        self.assertEqual(len(ours), len(packets))
        self.assertEqual(theirs, ours)
        deltas = [d for p in ours for _, d in p[3]]
        self.assertTrue(any(d > 255 for d in deltas), "no large delta")
        self.assertTrue(any(d < 0 for d in deltas), "no negative delta")
        self.assertTrue(any(p[1] > len(p[3]) for p in ours), "nothing lost")
        self.assertTrue(any(p[0] + p[1] > 65536 for p in ours), "no wrap of the numbers")
        self.assertEqual({self.kind(p) for p in packets}, {"run", "one bit", "two bits"})

    def kind(self, packet):
        """Of the first chunk."""
        return {0: "run", 2: "one bit", 3: "two bits"}.get(packet[20] >> 6, "run")


if __name__ == "__main__":
    unittest.main(verbosity=2)

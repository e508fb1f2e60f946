#!/usr/bin/python3
"""A clip from GStreamer to GStreamer through `leat rtp send` and `recv`, over a path that loses 2 % and takes
40 ms: every frame comes, whole.

Nothing here depends on how fast the machine is: packets live for ever, the receiver's jitter buffer waits for
ten seconds, and the congestion control is one that a busy processor does not drive far down. How
much is lost at what delay when packets do age is clip_over.py's business (docs/REALTIME.md).

    test_clip.py LEAT UDPLINK

SPDX-License-Identifier: MIT
"""
import json
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
UDPLINK, LEAT = os.path.abspath(sys.argv.pop(2)), os.path.abspath(sys.argv.pop(1))
SECONDS = 4


class Clip(unittest.TestCase):
    def carry(self, *mode):
        done = subprocess.run(
            [sys.executable, os.path.join(HERE, "clip_over.py"), LEAT, UDPLINK, "--only", "leat", "--codec", "vp8",
             "--seconds", str(SECONDS), "--kbit", "1000", "--latency", "10000", "--lifetime", "0",
             "--patience", "90", "--details",
             "--path", "loss=2", "delay=40", "--leat-options", "--congestion", "cubic", *mode],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=240)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout.splitlines()[0])["leat"]

    def test_streams_bring_every_frame(self):
        for mode in ("frame", "packet", "flow"):
            with self.subTest(mode=mode):
                result = self.carry("--stream-per", mode)
                counts = (result["frames"], result["lost"], result["broken"])
                self.assertEqual(counts, (SECONDS * 25, 0, 0), result)
                self.assertGreater(result["median"], 40)  # the path's own
                # Nothing was cut or turned away: all that came in went out.
                flow = result["details"]["leat"]["flows"][0]
                self.assertEqual(flow["packets_sent"], flow["in_packets"])
                self.assertEqual(flow["packets_late"] + flow["packets_overflow"] + flow["refused"], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)

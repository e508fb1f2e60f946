#!/usr/bin/python3
"""leat rtp against peers that nobody here wrote: GStreamer sends VP8 with the transport-wide extension over a
lossy link and believes leat's feedback; tshark reads the same from it as leat does; leat's sender believes
GStreamer's feedback.

Two views of the same packets are compared, never a view with a clock: however slow the machine, they agree.

    test_gstreamer.py LEAT

SPDX-License-Identifier: MIT
"""
import fractions
import json
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../support"))
from udp_link import Link, Way  # noqa: E402

LEAT = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else "leat"
PYTHON = "/usr/bin/python3"  # Debian's own has GStreamer's bindings
EXT_ID = 3
FRAMES = 120
PATIENCE = 120


def drops(port):
    """Datagrams that the kernel could not put into the socket of that port."""
    with open("/proc/net/udp", encoding="ascii") as table:
        for line in table.readlines()[1:]:
            fields = line.split()
            if int(fields[1].split(":")[1], 16) == port:
                return int(fields[-1])
    raise AssertionError(f"no socket on port {port}")


class Feedback:
    """`leat rtp feedback` from its listening line to its sums."""

    def __init__(self, *options):
        self.process = subprocess.Popen(
            [LEAT, "rtp", "feedback", "--listen", "udp://127.0.0.1:0", "--ext-id", str(EXT_ID), "--json",
             *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        found = re.match(r"listening on 127\.0\.0\.1:(\d+)", line)
        if not found:
            raise AssertionError("leat rtp feedback: " + line)
        self.port = int(found.group(1))

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0, err
        return json.loads(out.splitlines()[-1])


def gst_sends(rtp_port, frames=FRAMES):
    done = subprocess.run(
        [PYTHON, os.path.join(HERE, "gst_sender.py"), str(rtp_port), str(frames), str(EXT_ID)],
        stdout=subprocess.PIPE, timeout=PATIENCE, check=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def dump(pcap):
    """A capture as `leat rtp dump` reads it, packet by packet."""
    done = subprocess.run([LEAT, "rtp", "dump", "--json", pcap], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=True, text=True, timeout=PATIENCE)
    return [json.loads(line) for line in done.stdout.splitlines()]


def twcc_of(packets):
    return [p for p in packets if p.get("type") == 205 and p["count"] == 15]


def number_of(packet):
    return int(packet[f"ext{EXT_ID}"], 16)


def write_pcap(path, datagrams, port):
    """Datagrams as if they came from `port`, in a capture of raw IP."""
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))
        for data in datagrams:
            udp = struct.pack("!HHHH", port, port, 8 + len(data), 0) + data
            ip = struct.pack("!BBHHHBBHII", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, 0x7F000001, 0x7F000001)
            f.write(struct.pack("<IIII", 0, 0, len(ip + udp), len(ip + udp)) + ip + udp)


def tshark_reads(pcap, port):
    """The feedback from that port in a capture as tshark reads it, whatever protocols have registered the ports:
    (base, count, reference, [[number, ticks] …])."""
    done = subprocess.run(["tshark", "-r", pcap, "-d", "udp.port==1-65535,rtcp", "-Y",
                           f"udp.srcport=={port} && rtcp.rtpfb.transportcc.baseseq", "-V"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True,
                          timeout=PATIENCE)
    packets = []
    for part in done.stdout.split("Transport-cc\n")[1:]:
        base = int(re.search(r"Base Sequence Number: (\d+)", part).group(1))
        count = int(re.search(r"Packet Status Count: (\d+)", part).group(1))
        reference = int(re.search(r"Reference Time: (-?\d+)", part).group(1)) & 0xffffff
        deltas = re.findall(r"\[seq: (\d+)\] (-?[\d.]+) ms", part)
        packets.append((base, count, reference, [[int(s), round(float(d) * 4)] for s, d in deltas]))
    return packets


class Told:
    """All that feedback packets tell, as a sender sees it that reads them one after the other: (number, tick or
    None, size) in the order of numbers. No more than 65,536 numbers."""

    def __init__(self, sizes):
        self.sizes, self.packets = sizes, []

    def take(self, feedback):
        """One packet as `leat rtp dump` prints it."""
        tick, came = feedback["reference"] * 256, {}
        for number, delta in feedback["received"]:
            tick += delta
            came[number] = tick
        base = feedback["base"]
        self.packets = [p for p in self.packets if p[0] < base] + [
            (n, came.get(n), self.sizes.get(n)) for n in range(base, base + feedback["statuses"])]

    def has_window(self, stats):
        """Whether these statistics of GStreamer's are those of a row of packets near the end: so many of them
        lost, and this bitrate between the first and the last that came, to a millionth."""
        share = fractions.Fraction(stats["packet_loss_pct"] / 100).limit_denominator(400)
        for end in range(len(self.packets), max(0, len(self.packets) - 80), -1):
            bits, lost, last = 0, 0, None
            for i in range(end - 1, -1, -1):
                _, tick, size = self.packets[i]
                if tick is None:
                    lost += 1
                    continue
                last = tick if last is None else last
                bits += size * 8
                seconds = (last - tick) * 250e-6
                if seconds > 0 and fractions.Fraction(lost, end - i) == share and \
                        abs(bits / seconds / stats["bitrate_recv"] - 1) < 1e-6:
                    return True
        return False


class Gstreamer(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.pcap = os.path.join(self.folder.name, "feedback.pcap")

    def tearDown(self):
        self.folder.cleanup()

    def send_through(self, way, *options):
        """GStreamer through a link to leat: (its twcc-stats, leat's capture, leat's sums). leat received exactly
        what the link and the kernel let through."""
        feedback = Feedback("--pcap", self.pcap, *options)
        link = Link(0, ("127.0.0.1", feedback.port), out=way, keep=True).start()
        said = gst_sends(link.port)
        counts = link.stop()["out"]
        dropped = drops(feedback.port)
        sums = feedback.stop()
        packets = dump(self.pcap)
        self.assertEqual(said["failed"], [])
        self.assertGreater(counts["in"], 200)
        self.assertEqual(sums["packets"], counts["out"] + counts["duplicated"] - dropped)
        self.assertEqual(sums["packets"], sum(p["kind"] == "rtp" for p in packets))
        self.assertEqual((sums["without_ext"], sums["bad"], sums["send_errors"]), (0, 0, 0))
        if not dropped:
            self.assertEqual(sums["duplicates"], counts["duplicated"])
        return said["twcc"], packets, sums

    def assert_feedback_is_true(self, packets):
        """Each packet of the capture is told as received once it was recorded, and no other is."""
        came = set()
        for p in packets:
            if p["kind"] == "rtp":
                came.add(number_of(p))
            elif p in twcc_of([p]):
                told = {n for n, _ in p["received"]}
                of_these = {n for n in came if p["base"] <= n < p["base"] + p["statuses"]}
                self.assertEqual(told, of_these)

    def assert_gstreamer_believes(self, stats, packets):
        """For each feedback packet GStreamer counts the packets that it tells of, and those that came."""
        told = [(p["statuses"], len(p["received"])) for p in twcc_of(packets)]
        self.assertGreater(len(stats), 5)
        self.assertEqual([(s["packets_sent"], s["packets_recv"]) for s in stats], told[:len(stats)])

    def assert_gstreamer_sees_what_leat_saw(self, stats, packets):
        """GStreamer's loss and bitrate are those of the packets that leat recorded, at their times. GStreamer
        cuts its windows by the time at which it gets to send, so they are comparable where the machine kept pace
        with the video; one in thirty begins within a frame all the same. Chance would find next to none."""
        rtp = [p for p in packets if p["kind"] == "rtp"]
        told = Told({number_of(p): p["len"] for p in rtp})
        found = []
        for s, feedback in zip(stats, twcc_of(packets)):
            told.take(feedback)
            if s["bitrate_recv"] > 0:
                found.append(told.has_window(s))
        pauses = [b["time"] - a["time"] for a, b in zip(rtp, rtp[1:])]
        if max(pauses) < 0.1 and rtp[-1]["time"] < 1.1 * FRAMES / 30:
            self.assertGreater(len(found), 2)
            self.assertGreater(found.count(True), len(found) / 2)

    def test_a_clean_path(self):
        stats, packets, _ = self.send_through(Way(1))
        self.assert_feedback_is_true(packets)
        self.assert_gstreamer_believes(stats, packets)
        self.assert_gstreamer_sees_what_leat_saw(stats, packets)

    def test_a_lossy_path(self):
        stats, packets, sums = self.send_through(Way(7, loss=0.05, delay=20, jitter=3))
        self.assertGreater(sums["lost"], 0)
        self.assert_feedback_is_true(packets)
        self.assert_gstreamer_believes(stats, packets)
        self.assert_gstreamer_sees_what_leat_saw(stats, packets)
        self.assertTrue(any(s["avg_delta_of_delta"] != 0 for s in stats))

    def test_a_lossy_path_with_reordering_and_duplicates(self):
        stats, packets, _ = self.send_through(
            Way(7, loss=0.05, delay=20, jitter=3, reorder=0.02, duplicate=0.01))
        self.assert_feedback_is_true(packets)
        self.assert_gstreamer_believes(stats, packets)
        self.check_tshark(packets)

    def check_tshark(self, packets):
        """tshark: the same sequence numbers and deltas as leat."""
        feedback = [p for p in packets if p["kind"] == "rtcp"]
        port = int(feedback[0]["from"].rsplit(":", 1)[1])
        ours = [(p["base"], p["statuses"], p["reference"], p["received"]) for p in twcc_of(packets)]
        self.assertGreater(len(ours), 5)
        self.assertEqual(tshark_reads(self.pcap, port), ours)
        self.assertTrue(any(not 0 <= d <= 255 for p in ours for _, d in p[3]), "no large delta was among them")

    def test_reports_of_rfc_8888_tell_all_that_came(self):
        _, packets, sums = self.send_through(Way(3, loss=0.03), "--format", "rfc8888")
        self.assertGreater(sums["feedback_packets"], 5)
        came = {(p["ssrc"], p["seq"]) for p in packets if p["kind"] == "rtp"}
        blocks = [b for p in packets if p.get("type") == 205 and p["count"] == 11 for b in p["blocks"]]
        self.assertEqual({(ssrc, seq) for ssrc, seq, received, _, _ in blocks if received}, came)
        self.assertTrue(any(not b[2] for b in blocks))

    def test_leats_sender_believes_gstreamers_feedback(self):
        self.send_through(Way(1))
        link = Link(0, None, out=Way(9, loss=0.04, delay=10), keep=True)
        receiver = subprocess.Popen(
            [PYTHON, os.path.join(HERE, "gst_receiver.py"), str(link.rear_port), str(EXT_ID)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        link.to = ("127.0.0.1", json.loads(receiver.stdout.readline())["rtp_port"])
        link.start()
        done = subprocess.run(
            [LEAT, "rtp", "play", self.pcap, "--twcc", str(EXT_ID), "--to", f"udp://127.0.0.1:{link.port}",
             "--results"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True,
            timeout=PATIENCE)
        link.stop()
        out, _ = receiver.communicate("", timeout=PATIENCE)
        received = json.loads(out.splitlines()[-1])["received"]
        results = [json.loads(line) for line in done.stdout.splitlines()]
        told = {k: int(v) for k, v in re.findall(r"^(\w+) +(\d+) ", done.stderr, re.M)}
        self.assertGreater(told["feedback"], 5)
        self.assertEqual(told["feedback_bad"], 0)
        # tshark reads the same feedback; the last of it may have come when play had ended.
        answers = os.path.join(self.folder.name, "answers.pcap")
        write_pcap(answers, link.answers(), 5005)
        feedback = tshark_reads(answers, 5005)
        self.assertGreaterEqual(len(feedback), told["feedback"])
        self.assert_results_are(results, feedback[:told["feedback"]])
        arrived = {r["seq"] for r in results if r["arrived"] is not None}
        self.assertLessEqual(arrived, set(received))
        self.assertGreater(len(arrived), len(received) / 2)

    def assert_results_are(self, results, feedback):
        """The results say what these packets say: what came, when, and what did not."""
        came, numbers = {}, set()
        for base, count, reference, received in feedback:
            tick = reference * 256
            for number, delta in received:
                tick += delta
                came.setdefault(number, tick)
            numbers.update(range(base, base + count))
        arrived = {r["seq"]: r["arrived"] for r in results if r["arrived"] is not None}
        self.assertEqual(set(arrived), set(came))
        zero = min(came)
        for number, tick in came.items():
            self.assertEqual(arrived[number] - arrived[zero], (tick - came[zero]) * 250000)
        self.assertEqual({r["seq"] for r in results}, numbers)
        self.assertTrue(any(r["arrived"] is None for r in results))


if __name__ == "__main__":
    unittest.main(verbosity=2)

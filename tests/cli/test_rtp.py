"""`leat rtp dump`, `play` and `feedback` as their users meet them: captures of every kind, broken ones too.

SPDX-License-Identifier: MIT
"""
import json
import os
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest

from harness import ADDRESS, FILE, LEAT, OK, PATIENCE, USAGE

EXT = bytes.fromhex("bede0001" "31002a00")  # ID 3, two bytes: 42


def rtp(seq, payload=b"xyz", ext=b""):
    return struct.pack("!BBHII", 0x90 if ext else 0x80, 96, seq, seq * 100, 0x11223344) + ext + payload


RR = bytes.fromhex("80c9000111223344")
PLI = bytes.fromhex("81ce00021122334455667788")


def udp(data, port=5004):
    return struct.pack("!HHHH", 4000, port, 8 + len(data), 0) + data


def ipv4(data):
    return struct.pack("!BBHHHBBHII", 0x45, 0, 20 + len(data), 0, 0, 64, 17, 0, 0x7F000001, 0x7F000001) + data


def ipv6(data):
    return struct.pack("!IHBB", 0x60000000, len(data), 17, 64) + bytes(15) + b"\1" + bytes(15) + b"\2" + data


LINKS = {  # link type: what stands before IPv4
    101: b"",
    1: bytes(12) + b"\x08\x00",
    113: bytes(14) + b"\x08\x00",
    276: b"\x08\x00" + bytes(18),
    0: struct.pack("<I", 2),
}


def pcap(frames, link=101, order="<", nano=False, snap=262144):
    out = struct.pack(order + "IHHIIII", 0xA1B23C4D if nano else 0xA1B2C3D4, 2, 4, 0, 0, snap, link)
    for i, frame in enumerate(frames):
        kept = frame[:snap]
        out += struct.pack(order + "IIII", 100, i * (1000000 if nano else 1000), len(kept), len(frame)) + kept
    return out


def rtpdump(packets):
    out = b"#!rtpplay1.0 127.0.0.1/5004\n" + bytes(16)
    for i, p in enumerate(packets):
        out += struct.pack("!HHI", 8 + len(p), 0 if p[1] in (201, 206) else len(p), i) + p
    return out


class Rtp(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "capture")

    def tearDown(self):
        self.folder.cleanup()

    def leat(self, *args, content=None):
        if content is not None:
            with open(self.path, "wb") as f:
                f.write(content)
        return subprocess.run([LEAT, "rtp", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=PATIENCE)

    def dump(self, content):
        done = self.leat("dump", "--json", self.path, content=content)
        return done, [json.loads(line, object_pairs_hook=self.members) for line in done.stdout.splitlines()]

    def members(self, pairs):
        self.assertEqual(len({name for name, _ in pairs}), len(pairs), "a name stands twice")
        return dict(pairs)

    def test_each_link_type_byte_order_and_resolution_reads_the_same(self):
        frames = [ipv4(udp(rtp(1, ext=EXT))), ipv4(udp(RR + PLI)), ipv4(udp(rtp(2)))]
        want = None
        for link, before in LINKS.items():
            for order in "<>":
                for nano in (False, True):
                    done, got = self.dump(pcap([before + f for f in frames], link, order, nano))
                    self.assertEqual(done.returncode, OK, done.stderr)
                    want = want or got
                    self.assertEqual(got, want)
        self.assertEqual([p["kind"] for p in want], ["rtp", "rtcp", "rtcp", "rtp"])
        self.assertEqual(want[0]["ext3"], "002a")
        self.assertEqual(want[2]["name"], "picture loss indication")
        self.assertEqual([p["time"] for p in want], [0, 0.001, 0.001, 0.002])

    def test_ipv6_and_vlan_tags(self):
        tag = bytes(12) + b"\x81\x00\x00\x05" + b"\x86\xdd"
        done, got = self.dump(pcap([tag + ipv6(udp(rtp(7)))], link=1))
        self.assertEqual(done.returncode, OK)
        self.assertEqual((got[0]["seq"], got[0]["from"]), (7, "[::1]:4000"))

    def test_rtpdump_reads_and_text_says_the_same(self):
        done, got = self.dump(rtpdump([rtp(1), RR, rtp(2)]))
        self.assertEqual(done.returncode, OK)
        self.assertEqual([p["kind"] for p in got], ["rtp", "rtcp", "rtp"])
        text = self.leat("dump", self.path).stdout.splitlines()
        self.assertEqual(len(text), 3)
        self.assertIn("RTP ssrc=0x11223344 pt=96 seq=2 ts=200 marker=0 len=3", text[2])

    def test_bad_packets_are_told_with_their_offset_and_reading_goes_on(self):
        frames = [ipv4(udp(rtp(1))), ipv4(udp(b"\x9f\x60\0\1")), ipv4(udp(RR + PLI[:8])), ipv4(udp(rtp(2)))]
        done, got = self.dump(pcap(frames))
        self.assertEqual(done.returncode, OK)
        self.assertEqual([p.get("seq") for p in got if p["kind"] == "rtp"], [1, 2])
        first = 24 + 16 + len(frames[0]) + 16 + 28
        second = first - 28 + len(frames[1]) + 16 + 28 + len(RR)
        self.assertIn(f"offset {first}: RTP:", done.stderr)
        self.assertIn(f"offset {second}: RTCP:", done.stderr)
        self.assertIn("2 bad", done.stderr)

    def test_every_cut_of_a_file_ends_in_peace(self):
        for whole in (pcap([ipv4(udp(rtp(i, ext=EXT))) for i in range(3)]), rtpdump([rtp(1), RR, rtp(2)])):
            for cut in range(len(whole)):
                done = self.leat("dump", self.path, content=whole[:cut])
                self.assertIn(done.returncode, (OK, FILE), (cut, done.stderr))
                if done.returncode == FILE or "within a record" in done.stderr:
                    self.assertRegex(done.stderr, r"offset \d+: ")

    def test_what_is_no_capture_is_refused(self):
        for content, says in ((b"", "too short"), (b"hello world, this is text", "neither pcap nor rtpdump"),
                              (b"\x0a\x0d\x0d\x0a" + bytes(40), "pcapng")):
            done = self.leat("dump", self.path, content=content)
            self.assertEqual(done.returncode, FILE)
            self.assertIn(says, done.stderr)
        self.assertEqual(self.leat("dump", self.path + "-not-there").returncode, FILE)
        self.assertEqual(self.leat("dump").returncode, USAGE)
        self.assertEqual(self.leat("nonsense").returncode, USAGE)
        self.assertEqual(self.leat("play", self.path).returncode, USAGE)
        for bad in (["--listen", "udp://x:y"], ["--format", "xyz"], ["--ext-id", "0"], ["--mtu", "5"], ["extra"]):
            self.assertEqual(self.leat("feedback", *bad).returncode, USAGE, bad)

    def test_what_the_capture_cut_short_is_told_and_not_sent_again(self):
        padded = bytearray(rtp(2, b"p" * 500))
        padded[0] |= 0x20
        frames = [ipv4(udp(d)) for d in (rtp(1, b"p" * 500), bytes(padded), rtp(3))]
        done, got = self.dump(pcap(frames, snap=60))
        self.assertEqual(done.returncode, OK)
        self.assertEqual([(p["seq"], p["len"], p.get("cut")) for p in got], [(1, 500, 480), (3, 3, None)])
        self.assertIn(f"offset {24 + 16 + 60 + 16 + 28}: RTP: the input ends too early", done.stderr)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind(("127.0.0.1", 0))
            done = self.leat("play", self.path, "--speed", "0", "--to",
                             f"udp://127.0.0.1:{sock.getsockname()[1]}")
            self.assertRegex(done.stderr, r"\nleft_out +2 ")
            self.assertEqual(self.receive_all(sock, 1), [rtp(3)])
        short = rtpdump([rtp(1)])
        at = len(short) - len(rtp(1)) - 8
        done, got = self.dump(short[:at + 2] + struct.pack("!H", 515) + short[at + 4:])
        self.assertEqual((got[0]["len"], got[0]["cut"]), (503, 500))

    def test_records_longer_than_a_datagram_are_passed_over(self):
        done, got = self.dump(pcap([ipv4(udp(rtp(1))), b"\x45" + bytes(200000), ipv4(udp(rtp(2)))]))
        self.assertEqual((done.returncode, [p["seq"] for p in got]), (OK, [1, 2]))
        self.assertIn("1 other packets", done.stderr)

    def test_a_link_that_nobody_reads_is_said_to_be(self):
        done, _ = self.dump(pcap([ipv4(udp(rtp(1)))], link=147))
        self.assertEqual(done.returncode, FILE)
        self.assertIn("offset 20: link type 147", done.stderr)

    def test_output_that_cannot_be_written_is_an_error(self):
        with open(self.path, "wb") as f:
            f.write(pcap([ipv4(udp(rtp(1)))]))
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([LEAT, "rtp", "dump", self.path], stdout=full, stderr=subprocess.PIPE, text=True,
                                  timeout=PATIENCE)
        self.assertEqual(done.returncode, FILE)
        self.assertIn("cannot write the output", done.stderr)

    def test_addresses_and_files_that_cannot_be_used_are_told_apart(self):
        capture = pcap([ipv4(udp(rtp(1)))])
        for args, code in (
                (["play", self.path, "--to", "udp://127.0.0.1:0"], USAGE),
                (["feedback", "--to", "udp://127.0.0.1:0"], USAGE),
                (["play", self.path, "--to", "udp://[::1]:9", "--listen", "udp://127.0.0.1:0"], ADDRESS),
                (["feedback", "--listen", "udp://192.0.2.1:0"], ADDRESS),
                (["feedback", "--listen", "udp://127.0.0.1:0", "--pcap", self.path + "/no"], FILE),
                (["feedback", "--listen", "udp://127.0.0.1:0", "--pcap", "/dev/full", "--time", "0.01"], FILE)):
            done = self.leat(*args, content=capture)
            self.assertEqual(done.returncode, code, (args, done.stderr))

    def test_the_slowest_speed_waits_and_does_not_wrap(self):
        with open(self.path, "wb") as f:
            f.write(pcap([ipv4(udp(rtp(i))) for i in range(2)]))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind(("127.0.0.1", 0))
            play = subprocess.Popen([LEAT, "rtp", "play", self.path, "--speed", "1e-300", "--to",
                                     f"udp://127.0.0.1:{sock.getsockname()[1]}"],
                                    stderr=subprocess.PIPE, text=True)
            self.receive_all(sock, 1)
            play.send_signal(signal.SIGTERM)
            _, err = play.communicate(timeout=PATIENCE)
        self.assertRegex(err, r"packets +1 ")

    def test_feedback_of_rfc_8888_counts_what_it_leaves_out(self):
        feedback = subprocess.Popen(
            [LEAT, "rtp", "feedback", "--listen", "udp://127.0.0.1:0", "--format", "rfc8888", "--json"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        port = int(feedback.stderr.readline().rsplit(":", 1)[1])
        done = self.leat("play", self.path, "--speed", "0", "--to", f"udp://127.0.0.1:{port}",
                         content=pcap([ipv4(udp(rtp(i))) for i in (1, 2, 2, 3, 1)]))
        self.assertEqual(done.returncode, OK, done.stderr)
        feedback.send_signal(signal.SIGTERM)
        out, err = feedback.communicate(timeout=PATIENCE)
        self.assertEqual(feedback.returncode, OK, err)
        sums = json.loads(out.splitlines()[-1])
        self.assertEqual((sums["packets"], sums["duplicates"], sums["too_old"], sums["refused"]), (5, 2, 0, 0))

    def test_a_record_that_claims_gigabytes_is_refused(self):
        content = pcap([]) + struct.pack("<IIII", 0, 0, 0x7FFFFFFF, 0x7FFFFFFF) + bytes(100)
        done, got = self.dump(content)
        self.assertEqual((done.returncode, got), (OK, []))
        self.assertIn("offset 24: a record longer than any packet", done.stderr)

    def receive_all(self, sock, count):
        sock.settimeout(PATIENCE)
        return [sock.recv(65536) for _ in range(count)]

    def test_twcc_feedback_is_printed_in_full(self):
        twcc = bytes.fromhex("8fcd0006 11223344 55667788 00070003 00000205 2003 04080c 000000".replace(" ", ""))
        done, got = self.dump(pcap([ipv4(udp(twcc))]))
        self.assertEqual((done.returncode, done.stderr.count("offset")), (OK, 0), done.stderr)
        self.assertEqual((got[0]["type"], got[0]["count"], got[0]["feedback"]), (205, 15, 5))
        self.assertEqual((got[0]["base"], got[0]["statuses"], got[0]["reference"]), (7, 3, 2))
        self.assertEqual(got[0]["received"], [[7, 4], [8, 8], [9, 12]])

    def test_play_sends_a_capture_again_in_order(self):
        packets = [rtp(i, bytes([i]) * 50) for i in range(20)] + [RR]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind(("127.0.0.1", 0))
            done = self.leat("play", self.path, "--speed", "10", "--loops", "2", "--to",
                             f"udp://127.0.0.1:{sock.getsockname()[1]}",
                             content=pcap([ipv4(udp(p)) for p in packets]))
            self.assertEqual(done.returncode, OK, done.stderr)
            self.assertEqual(self.receive_all(sock, 42), packets * 2)

    def test_play_keeps_the_pace_of_the_capture(self):
        """It may be late on a busy machine, and never early."""
        frame = ipv4(udp(rtp(1)))
        content = pcap([])
        for ms in (0, 300, 600):
            content += struct.pack("<IIII", 100, ms * 1000, len(frame), len(frame)) + frame
        for speed, least in (("1", 0.6), ("2", 0.3)):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
                sock.bind(("127.0.0.1", 0))
                before = time.monotonic()
                done = self.leat("play", self.path, "--speed", speed, "--to",
                                 f"udp://127.0.0.1:{sock.getsockname()[1]}", content=content)
                self.assertEqual(done.returncode, OK, done.stderr)
                self.assertGreaterEqual(time.monotonic() - before, least)
                self.assertEqual(len(self.receive_all(sock, 3)), 3)

    def test_play_numbers_packets_and_believes_feedback(self):
        feedback = subprocess.Popen(
            [LEAT, "rtp", "feedback", "--listen", "udp://127.0.0.1:0", "--ext-id", "3", "--json", "-i", "0.02"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        port = int(feedback.stderr.readline().rsplit(":", 1)[1])
        done = self.leat("play", self.path, "--twcc", "3", "--results", "--linger", str(PATIENCE // 2), "--to",
                         f"udp://127.0.0.1:{port}",
                         content=pcap([ipv4(udp(rtp(i, ext=EXT if i % 2 else b""))) for i in range(300)]))
        feedback.send_signal(signal.SIGTERM)
        out, err = feedback.communicate(timeout=PATIENCE)
        self.assertEqual(feedback.returncode, OK, err)
        sums = json.loads(out.splitlines()[-1])
        self.assertEqual((sums["packets"], sums["without_ext"], sums["lost"]), (300, 0, 0))
        results = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([r["seq"] for r in results], list(range(300)))
        self.assertTrue(all(r["arrived"] for r in results))


if __name__ == "__main__":
    unittest.main(verbosity=2)

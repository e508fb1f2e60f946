#!/usr/bin/python3
"""The same clip over leat and over SRT, across the same bad path (tests/support/udplink), one after the other:
GStreamer encodes and sends, GStreamer receives and decodes; frames are counted and timed.

    clip_over.py LEAT UDPLINK [--seconds N] [--kbit N] [--latency MS] [--seed N] [--only NAME] [--path FAULT=…]
                 [--leat OPTION…]

A packet's time runs from where it is sent with leat's --lifetime, and from where it would have come with SRT's
latency: so that both may take as long, leat's is longer by the path's delay, where none is given.

A frame is lost when it is not shown whole. Its delay is from the encoder's input to the decoder's output; the
added delay is that, less what the same takes over a path without faults.

SPDX-License-Identifier: MIT
"""
import argparse
import json
import os
import re
import signal
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"  # Debian's own has GStreamer's bindings
PATIENCE = 120
RATE = 25
PATH = ["loss=2", "delay=40", "rate=3000", "queue=60"]


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Process:
    def __init__(self, *args, wait=None, err=subprocess.PIPE):
        self.process = subprocess.Popen([str(a) for a in args], stdout=subprocess.PIPE, stderr=err, text=True)
        self.err = ""
        if wait:
            stream = self.process.stdout if err is None else self.process.stderr
            for line in stream:
                self.err += line
                if found := re.search(wait, line):
                    self.found = found
                    return
            raise AssertionError(f"{args}: {self.err}")

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=PATIENCE)
        return out, self.err + (err or "")


def receiver(how, port, options):
    return Process(PYTHON, os.path.join(HERE, "gst_clip_receiver.py"), how, port, options.latency, options.frames,
                   wait="ready", err=None)


def shown_by(sink, patience):
    """What the receiver has shown, once it has had all, or nothing more can be waited for."""
    try:
        sink.process.wait(patience)
    except subprocess.TimeoutExpired:
        pass
    return json.loads(sink.stop()[0].splitlines()[-1])


def sender(how, port, frames, kbit, latency):
    done = subprocess.run([PYTHON, os.path.join(HERE, "gst_clip_sender.py"), how, str(port), str(frames),
                           str(kbit), str(latency)], stdout=subprocess.PIPE, timeout=PATIENCE, check=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def link(options, to, path):
    return Process(options.udplink, "--to", f"127.0.0.1:{to}", "--seed", options.seed, *path,
                   wait=r"listening on 127\.0\.0\.1:(\d+)", err=None)


def over_leat(options, path):
    out = free_port()
    sink = receiver(options.codec, out, options)
    delay = sum(int(fault.removeprefix("delay=")) for fault in path if fault.startswith("delay="))
    lifetime = (options.latency + delay) / 1000 if options.lifetime is None else options.lifetime
    recv = Process(options.leat, "rtp", "recv", "--listen", "127.0.0.1:0", "--out", f"udp://127.0.0.1:{out}",
                   "--rtcp-mux", wait=r"listening on 127\.0\.0\.1:(\d+)")
    way = link(options, recv.found.group(1), path)
    send = Process(options.leat, "rtp", "send", "-k", "--in", "udp://127.0.0.1:0", "--rtcp-mux", "--lifetime",
                   lifetime, *options.leat_options, f"127.0.0.1:{way.found.group(1)}",
                   wait=r"takes RTP at 127\.0\.0\.1:(\d+)")
    for line in send.process.stderr:
        if line.startswith("connected"):
            break
    given = sender(options.codec, send.found.group(1), options.frames, options.kbit, 0)
    shown = shown_by(sink, options.patience)
    stats, _ = send.stop()
    recv.stop()
    counts = way.stop()[0]
    return given, shown, {"link": counts, "leat": json.loads(stats.splitlines()[-1])}


def over_srt(options, path):
    port = free_port()
    sink = receiver("srt", port, options)
    way = link(options, port, path)
    given = sender("srt", way.found.group(1), options.frames, options.kbit, options.latency)
    shown = shown_by(sink, options.patience)
    return given, shown, {"link": way.stop()[0]}


def percentile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))] if values else None


def judge(given, shown):
    """What became of the frames, in milliseconds."""
    first, broken = {}, 0
    for number, whole, when in shown:
        if number is None or not whole or number >= len(given):
            broken += 1
        elif number not in first:
            first[number] = (when - given[number]) * 1000
    delays = list(first.values())
    return {"frames": len(given), "whole": len(first), "lost": len(given) - len(first), "broken": broken,
            **{name: percentile(delays, part) and round(percentile(delays, part), 1)
               for name, part in (("median", 0.5), ("p95", 0.95), ("p99", 0.99), ("most", 1))}}


WAYS = {"leat": over_leat, "srt": over_srt}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("leat", type=os.path.abspath)
    parser.add_argument("udplink", type=os.path.abspath)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--kbit", type=int, default=1500)
    parser.add_argument("--latency", type=int, default=250)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=WAYS)
    parser.add_argument("--codec", choices=("rtp", "vp8"), default="rtp", help="of leat's: H.264 or VP8")
    parser.add_argument("--patience", type=float, default=1, help="seconds to wait for frames after the last")
    parser.add_argument("--lifetime", type=float, help="seconds that a packet lives (default: the latency "
                        "and the path's delay)")
    parser.add_argument("--path", nargs="*", default=PATH)
    parser.add_argument("--clean", action="store_true", help="over a path without faults as well, for comparison")
    parser.add_argument("--details", action="store_true")
    parser.add_argument("--rows", action="store_true", help="print rows of a table")
    parser.add_argument("--leat-options", nargs=argparse.REMAINDER, default=["--stream-per", "frame"])
    options = parser.parse_args()
    options.frames = int(options.seconds * RATE)
    out = {}
    for name in [options.only] if options.only else WAYS:
        for path in ([], options.path) if options.clean else (options.path,):
            given, shown, details = WAYS[name](options, path)
            result = judge(given, shown)
            result["path"] = " ".join(path) or "clean"
            if options.details:
                result["details"] = details
            out[name if path else name + "-clean"] = result
            if options.rows:
                cells = [name, options.seed] + [result[k] for k in ("frames", "lost", "median", "p95", "p99", "most")]
                print("| " + " | ".join(str(c) for c in cells) + " |", flush=True)
            else:
                print(json.dumps({name: result}), flush=True)
    if len(out) >= 2 and "leat" in out and "srt" in out:
        added = {n: out[n]["median"] - (out[n + "-clean"]["median"] if n + "-clean" in out else 0)
                 for n in ("leat", "srt")}
        good = out["leat"]["lost"] <= out["srt"]["lost"] and added["leat"] <= added["srt"]
        if not options.rows:
            print(f"leat loses {out['leat']['lost']} of {options.frames} frames, SRT {out['srt']['lost']}; "
                  f"median delay {out['leat']['median']} ms and {out['srt']['median']} ms")
        sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()

#!/usr/bin/python3
"""Receives the clip of clip.py, decodes it, and reads every frame.

    gst_clip_receiver.py vp8|rtp|srt PORT LATENCY FRAMES

LATENCY, in milliseconds: of rtpjitterbuffer, or of SRT. Prints "ready" when it listens; after FRAMES of them, or
at SIGTERM, one JSON line: for each frame shown its number (null: cannot be read), whether it is whole, and when
it came out of the decoder, by CLOCK_MONOTONIC.

SPDX-License-Identifier: MIT
"""
import json
import signal
import sys
import time

import gi

gi.require_version("Gst", "1.0")
from gi.repository import GLib, Gst  # noqa: E402

from clip import HEIGHT, WIDTH, read  # noqa: E402


def main():
    how, port, latency, frames = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    Gst.init(None)
    name = "VP8" if how == "vp8" else "H264"
    rtp = (f"udpsrc address=127.0.0.1 port={port} buffer-size=4194304 caps=\"application/x-rtp,media=video,"
           f"clock-rate=90000,encoding-name={name},payload=96\" ! rtpjitterbuffer latency={latency} ! ")
    head = {
        "vp8": rtp + "rtpvp8depay ! vp8dec",
        "rtp": rtp + "rtph264depay ! h264parse ! openh264dec",
        "srt": f"srtsrc uri=srt://127.0.0.1:{port}?mode=listener latency={latency} ! tsdemux latency=0 ! "
               "h264parse ! openh264dec",
    }[how]
    pipeline = Gst.parse_launch(
        f"{head} ! video/x-raw,format=I420 ! "
        "appsink name=sink sync=false emit-signals=true max-buffers=0")
    shown = []

    def on_sample(sink):
        now = time.monotonic()
        buffer = sink.emit("pull-sample").get_buffer()
        good, data = buffer.map(Gst.MapFlags.READ)
        if good:
            shown.append((now, bytes(data.data[:WIDTH * HEIGHT])))
            buffer.unmap(data)
        if len(shown) >= frames:
            GLib.idle_add(loop.quit)
        return Gst.FlowReturn.OK

    loop = GLib.MainLoop()
    pipeline.get_by_name("sink").connect("new-sample", on_sample)
    bus = pipeline.get_bus()
    bus.add_signal_watch()
    GLib.unix_signal_add(GLib.PRIORITY_DEFAULT, signal.SIGTERM, loop.quit)
    if pipeline.set_state(Gst.State.PLAYING) == Gst.StateChangeReturn.FAILURE:
        sys.exit("the pipeline does not start")
    print("ready", flush=True)
    loop.run()
    pipeline.set_state(Gst.State.NULL)
    print(json.dumps([(*read(luma, WIDTH), when) for when, luma in shown]))


main()

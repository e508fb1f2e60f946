#!/usr/bin/python3
"""Encodes the clip of clip.py live and sends it, by RTP over UDP or by SRT.

    gst_clip_sender.py vp8|rtp|srt PORT FRAMES KBIT [LATENCY]

vp8: VP8 in RTP; rtp: H.264 in RTP; srt: H.264 in MPEG-TS.

Prints one JSON line: when each frame was given to the encoder, by CLOCK_MONOTONIC.

SPDX-License-Identifier: MIT
"""
import json
import sys
import time

import gi

gi.require_version("Gst", "1.0")
from gi.repository import GLib, Gst  # noqa: E402

from clip import HEIGHT, RATE, WIDTH, frame  # noqa: E402


def main():
    how, port, frames, kbit = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    Gst.init(None)
    h264 = (f"openh264enc bitrate={kbit * 1000} gop-size={RATE} rate-control=bitrate complexity=low ! "
            "h264parse config-interval=-1 ! ")
    tail = {
        "vp8": f"vp8enc deadline=1 cpu-used=8 target-bitrate={kbit * 1000} keyframe-max-dist={RATE} ! "
               f"rtpvp8pay mtu=1150 timestamp-offset=0 ! udpsink host=127.0.0.1 port={port} sync=false",
        "rtp": h264 + f"rtph264pay mtu=1150 config-interval=-1 timestamp-offset=0 ! udpsink host=127.0.0.1 port={port} "
               "sync=false",
        "srt": h264 + "mpegtsmux alignment=7 ! srtsink name=srt wait-for-connection=false sync=false "
               f"uri=srt://127.0.0.1:{port}?mode=caller latency={sys.argv[5] if len(sys.argv) > 5 else 125}",
    }[how]
    pipeline = Gst.parse_launch(
        f"appsrc name=source is-live=true format=time caps=video/x-raw,format=I420,width={WIDTH},height={HEIGHT},"
        f"framerate={RATE}/1 ! {tail}")
    source = pipeline.get_by_name("source")
    clip = [frame(n) for n in range(frames)]  # before the clock runs
    failed = []
    bus = pipeline.get_bus()
    bus.add_signal_watch()
    bus.connect("message::error", lambda _, m: failed.append(str(m.parse_error())))
    pipeline.set_state(Gst.State.PLAYING)
    context = GLib.MainContext.default()
    start = time.monotonic()
    given = []
    for n in range(frames):
        while (left := start + n / RATE - time.monotonic()) > 0:
            context.iteration(False)
            time.sleep(min(left, 0.005))
        buffer = Gst.Buffer.new_wrapped(clip[n])
        buffer.pts = buffer.dts = n * Gst.SECOND // RATE
        buffer.duration = Gst.SECOND // RATE
        given.append(time.monotonic())
        source.emit("push-buffer", buffer)
        if failed:
            sys.exit(failed[0])
    end = time.monotonic() + 1.5  # what is under way
    while time.monotonic() < end:
        context.iteration(False)
        time.sleep(0.005)
    pipeline.set_state(Gst.State.NULL)
    print(json.dumps(given))


main()

#!/usr/bin/python3
"""GStreamer's other side: takes RTP with the transport-wide extension and answers with its own TWCC feedback.

    gst_receiver.py FEEDBACK_PORT EXT_ID

Prints one JSON line with its port when it listens; runs until standard input ends; then prints another with
the numbers that it received.
"""
import json
import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtp", "1.0")
from gi.repository import GLib, Gst, GstRtp  # noqa: E402

URI = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"


def main():
    feedback_port, ext_id = (int(a) for a in sys.argv[1:3])
    Gst.init(None)
    caps = ("application/x-rtp,media=video,clock-rate=90000,encoding-name=VP8,payload=96,"
            f"extmap-{ext_id}=(string){URI},rtcp-fb-transport-cc=(boolean)true")
    pipeline = Gst.parse_launch(
        "rtpbin name=bin rtp-profile=avpf "
        f"udpsrc name=rtp address=127.0.0.1 port=0 buffer-size=4000000 caps=\"{caps}\" ! "
        "bin.recv_rtp_sink_0 "
        f"bin.send_rtcp_src_0 ! udpsink host=127.0.0.1 port={feedback_port} sync=false async=false")
    received = []

    def on_pad(_, pad):
        if not pad.get_name().startswith("recv_rtp_src"):
            return
        sink = Gst.ElementFactory.make("fakesink", None)
        sink.set_property("sync", False)
        sink.set_property("async", False)
        pipeline.add(sink)
        sink.sync_state_with_parent()
        pad.link(sink.get_static_pad("sink"))

    def on_buffer(_pad, info):
        good, rtp = GstRtp.RTPBuffer.map(info.get_buffer(), Gst.MapFlags.READ)
        if good:
            found, number = rtp.get_extension_onebyte_header(ext_id, 0)
            received.append(int.from_bytes(number, "big") if found else None)
            rtp.unmap()
        return Gst.PadProbeReturn.OK

    pipeline.get_by_name("bin").connect("pad-added", on_pad)
    source = pipeline.get_by_name("rtp")
    source.get_static_pad("src").add_probe(Gst.PadProbeType.BUFFER, on_buffer)
    pipeline.set_state(Gst.State.PLAYING)
    pipeline.get_state(5 * Gst.SECOND)
    print(json.dumps({"rtp_port": source.get_property("port")}), flush=True)
    loop = GLib.MainLoop()
    GLib.io_add_watch(sys.stdin, GLib.PRIORITY_DEFAULT, GLib.IOCondition.HUP | GLib.IOCondition.IN,
                      lambda *_: (loop.quit(), False)[1])
    loop.run()
    pipeline.set_state(Gst.State.NULL)
    print(json.dumps({"received": received}), flush=True)


if __name__ == "__main__":
    main()

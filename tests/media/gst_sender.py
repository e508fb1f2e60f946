#!/usr/bin/python3
"""GStreamer's side: VP8 over RTP/UDP with the transport-wide extension, and what its rtpsession makes of the
feedback.

    gst_sender.py RTP_PORT FRAMES EXT_ID

Sends so many frames to 127.0.0.1:RTP_PORT, takes RTCP on the same socket, ends when no feedback has come for
a while, and prints one JSON line: for each feedback rtpsession's twcc-stats, and the packets of which its
RTPTWCCPackets event tells, as the congestion control beside it would get them.
"""
import json
import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtp", "1.0")
from gi.repository import GLib, Gst, GstRtp  # noqa: E402,F401 (GstRtp gives extensions set_id())

URI = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"


SILENCE = 700  # milliseconds without feedback, after the last frame: there will be no more


def value(structure, name):
    return structure.get_value(name) if structure.has_field(name) else None


def main():
    rtp_port, frames, ext_id = (int(a) for a in sys.argv[1:4])
    Gst.init(None)
    pipeline = Gst.parse_launch(
        "rtpbin name=bin "
        f"videotestsrc is-live=true pattern=snow num-buffers={frames} ! video/x-raw,width=320,height=240,framerate=30/1 ! "
        "vp8enc deadline=1 target-bitrate=1000000 ! rtpvp8pay name=pay mtu=1100 ! bin.send_rtp_sink_0 "
        f"bin.send_rtp_src_0 ! udpsink name=out host=127.0.0.1 port={rtp_port} sync=false close-socket=false "
        "udpsrc name=rtcp address=127.0.0.1 port=0 ! bin.recv_rtcp_sink_0 ")
    rtcp = pipeline.get_by_name("rtcp")
    rtcp.set_state(Gst.State.READY)  # opens the socket, which both then use
    pipeline.get_by_name("out").set_property("socket", rtcp.get_property("used-socket"))
    pay = pipeline.get_by_name("pay")
    ext = Gst.ElementFactory.make("rtphdrexttwcc", None)
    if ext is None:
        sys.exit("no rtphdrexttwcc")
    ext.set_id(ext_id)
    pay.emit("add-extension", ext)

    history, told_of = [], []
    session = pipeline.get_by_name("bin").emit("get-session", 0)

    def on_stats(source, _):
        stats = source.get_property("twcc-stats")
        if stats is not None and value(stats, "packets-sent"):
            history.append({n.replace("-", "_"): value(stats, n) for n in (
                "bitrate-sent", "bitrate-recv", "packets-sent", "packets-recv",
                "packet-loss-pct", "avg-delta-of-delta")})

    session.connect("notify::twcc-stats", on_stats)
    loop = GLib.MainLoop()
    bus = pipeline.get_bus()
    bus.add_signal_watch()
    failed = []
    bus.connect("message::error", lambda _, m: (failed.append(str(m.parse_error())), loop.quit()))
    told = [-1]

    def look():
        """The end, when nothing new came since the last look."""
        if len(history) == told[0]:
            loop.quit()
            return False
        told[0] = len(history)
        return True

    def on_end(_pad, info):
        if info.get_event().type == Gst.EventType.EOS:
            GLib.timeout_add(SILENCE, look)
        return Gst.PadProbeReturn.OK

    def on_packets(_pad, info):
        structure = info.get_event().get_structure()
        if structure is not None and structure.get_name() == "RTPTWCCPackets":
            packets = structure.get_value("packets")
            if not isinstance(packets, list):
                packets = [packets.get_nth(i) for i in range(packets.n_values)]
            told_of.append([[value(p, n) for n in ("seqnum", "lost", "size", "local-ts", "remote-ts")]
                            for p in packets])
        return Gst.PadProbeReturn.OK

    pay.get_static_pad("src").add_probe(Gst.PadProbeType.EVENT_DOWNSTREAM, on_end)
    pay.get_static_pad("src").add_probe(Gst.PadProbeType.EVENT_UPSTREAM, on_packets)
    pipeline.set_state(Gst.State.PLAYING)
    loop.run()
    pipeline.set_state(Gst.State.NULL)
    print(json.dumps({"stats": history, "packets": told_of, "failed": failed}), flush=True)


if __name__ == "__main__":
    main()

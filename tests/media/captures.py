"""Captures for the tests of media: written here, read by `leat rtp dump` and by tshark.

SPDX-License-Identifier: MIT
"""
import json
import re
import struct
import subprocess

PATIENCE = 120


def dump(leat, pcap):
    """A capture as `leat rtp dump` reads it, packet by packet."""
    done = subprocess.run([leat, "rtp", "dump", "--json", pcap], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=True, text=True, timeout=PATIENCE)
    return [json.loads(line) for line in done.stdout.splitlines()]


def twcc_of(packets):
    return [p for p in packets if p.get("type") == 205 and p["count"] == 15]


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

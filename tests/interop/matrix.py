"""The cases of the public QUIC interop runner, played here: leat with leat, and leat with Debian's
ngtcp2 in both roles, across the bad link of tests/support/udplink, without Docker.

    matrix.py LEAT UDPLINK [--pairs LIST] [--cases LIST] [--jobs N] [--keep]

leat is started by interop/run_endpoint.sh, as in the runner. What is checked is what the runner
checks: files, exit codes, and what tshark reads in the captures of both sides of the link. A cell is

    ok             all checks passed
    FAIL           one did not: the folder of the case is kept, and the reason printed
    unsupported    one side cannot play the case, for the reason printed

ngtcp2 speaks h3 alone, so its pairs do; leat with leat speaks hq-interop, as the runner does. With no
FAIL the exit status is 0.

SPDX-License-Identifier: MIT
"""
import argparse
import concurrent.futures
import os
import random
import shutil
import socket
import string
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field

ARGV = sys.argv[1:]
del sys.argv[1:]

import peers  # noqa: E402
from peers import PATIENCE, Process, program, random_file, sha256, wait_udp_port  # noqa: E402
from trace import (HANDSHAKE, INITIAL, RETRY, ZERO_RTT, Capture, Trace,  # noqa: E402
                   may_capture)  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
ENDPOINT = os.path.join(os.path.dirname(os.path.dirname(HERE)), "interop", "run_endpoint.sh")
KB, MB = 1 << 10, 1 << 20
V1, V2 = 0x00000001, 0x6b3343cf
LINE = ["delay=15", "rate=10000", "queue=25"]  # the runner's: 30 ms, 10 Mbit/s
UNKNOWN = 127
TRANSFER_PATIENCE = 300

MAX_DATA, MAX_STREAM_DATA, PATH_CHALLENGE = 0x10, 0x11, 0x1a
ECT = (1, 2)


class Unsupported(Exception):
    pass


class Failed(Exception):
    pass


def check(holds, what):
    if not holds:
        raise Failed(what)


# ---- what the captures must show ----------------------------------------------------------------


class Sides:
    """The captures of a run. What a client sends stands in the client's, before the link spoils it,
    and what a server sends in the server's."""

    def __init__(self, run):
        self.run = run
        self.keys = run.path("keys")
        with open(self.keys, "w") as out:
            for name in ("keys.client", "keys.server"):
                if os.path.exists(run.path(name)):
                    with open(run.path(name)) as f:
                        out.write(f.read())
        self.traces = {}

    def trace(self, side):
        if side not in self.traces:
            self.traces[side] = Trace(self.run.path(f"{side}.pcap"), self.keys)
        return self.traces[side]

    def rows(self, side, sender):
        ports = [self.run.link_port] if side == "client" else [self.run.server_port]
        ports.append(self.run.preferred_port)
        return [row for row in self.trace(side).rows
                if "quic" in row.fields["frame.protocols"] and
                (row.source[1] in ports) == (sender == "server")]

    @property
    def from_client(self):
        return self.rows("client", "client")

    @property
    def from_server(self):
        return self.rows("server", "server")


def packets(rows, kind):
    """(version, dcid, scid, row) of the long packets of one type."""
    found = []
    for row in rows:
        long = zip(row.types, row.numbers("quic.version"), row.all("quic.dcid"),
                   row.all("quic.scid"))
        found += [(version, dcid, scid, row) for type_, version, dcid, scid in long
                  if type_ == kind]
    return found


def check_handshakes(sides, count):
    """So many connections have got as far as the server's Handshake packets."""
    seen = {scid for _, _, scid, _ in packets(sides.from_server, HANDSHAKE)}
    check(len(seen) == count, f"{len(seen)} handshakes, not {count}")


def check_close(sides):
    """The client ends without an error: NO_ERROR, or H3_NO_ERROR."""
    codes = [int(code, 0) for row in sides.from_client
             for code in row.all("quic.cc.error_code") + row.all("quic.cc.error_code.app")]
    check(codes, "the client sends no CONNECTION_CLOSE")
    check(set(codes) <= {0, 0x100}, f"the client closes with {codes}")


def check_clean(sides):
    """On a link that spoils nothing, tshark understands all."""
    for side in ("client", "server"):
        faults = sides.trace(side).faults()
        check(not faults, f"{side}'s capture: " + "; ".join(faults))


def one_connection(sides):
    check_handshakes(sides, 1)
    check_close(sides)


def no_retry(sides):
    one_connection(sides)
    check(not packets(sides.from_server, RETRY), "there is a Retry")


def long_rtt(sides):
    one_connection(sides)
    hellos = [row for row in sides.from_client if INITIAL in row.types and 6 in row.frames]
    check(len(hellos) >= 2, "the ClientHello was not sent again: the link has no such delay")


def windows_used(sides):
    one_connection(sides)
    check_clean(sides)
    updates = [row for row in sides.from_client
               if MAX_DATA in row.frames or MAX_STREAM_DATA in row.frames]
    check(updates, "the client never raises a flow-control limit")


def only_chacha20(sides):
    one_connection(sides)
    offered = {int(cipher, 0) for row in sides.from_client
               for cipher in row.all("tls.handshake.ciphersuite")}
    check(offered == {0x1303}, f"the client offers {[hex(c) for c in offered]}")


def stream_limit(sides):
    one_connection(sides)
    limits = [int(n, 0) for row in sides.rows("client", "server")
              for n in row.all("tls.quic.parameter.initial_max_streams_bidi")]
    check(limits, "the server's initial_max_streams_bidi cannot be read")
    check(max(limits) <= 1000, f"the server starts with {max(limits)} streams")


def retry_token(sides):
    one_connection(sides)
    check(packets(sides.rows("client", "server"), RETRY), "there is no Retry")
    before = -1
    for row in sides.from_client:
        if INITIAL not in row.types:
            continue
        number = row.numbers("quic.packet_number")[0]
        if not row.get("quic.token"):
            before = max(before, number)
            continue
        check(number > before, "packet numbers start again after the Retry")
        return
    raise Failed("no Initial has a token")


def resumed(sides):
    check_handshakes(sides, 2)
    order = []
    for _, _, scid, _ in packets(sides.from_server, HANDSHAKE):
        if scid not in order:
            order.append(scid)
    with_certificate = {scid for _, _, scid, row in packets(sides.from_server, HANDSHAKE)
                        if 11 in row.numbers("tls.handshake.type")}
    check(with_certificate == {order[0]}, "a certificate comes with another than the first handshake")


def early_data(sides):
    check_handshakes(sides, 2)
    early = sum(row.payload for _, _, _, row in packets(sides.from_client, ZERO_RTT))
    late = sum(row.payload for row in sides.from_client
               if "0" in row.all("quic.header_form") and not row.types)
    check(early > 0, "there is no 0-RTT packet")
    check(late <= 5000, f"the client sends {late} bytes in 1-RTT packets")


def both_phases(sides):
    one_connection(sides)
    first_megabyte = 0
    for row in sides.trace("client").rows:
        if row.get("quic.key_phase") and int(row.get("quic.key_phase")) == 1:
            break
        first_megabyte += row.payload
    check(first_megabyte < MB, f"the first update comes after {first_megabyte} bytes")
    for who, rows in (("client", sides.from_client), ("server", sides.from_server)):
        phases = {int(phase) for row in rows for phase in row.all("quic.key_phase")}
        check(phases == {0, 1}, f"the {who}'s packets have key phases {sorted(phases)}")


def ecn_both_ways(sides):
    no_retry(sides)
    for who, rows in (("client", sides.from_client), ("server", sides.from_server)):
        bare = [row for row in rows if int(row.get("ip.dsfield.ecn")) not in ECT]
        check(not bare, f"{len(bare)} of the {who}'s {len(rows)} packets are not marked ECT")
        check([row for row in rows if row.get("quic.ack.ect0_count")],
              f"the {who} sends no ACK with ECN counts")


def amplification(sides):
    """What the server sends before it has a packet from the client that proves its address."""
    one_connection(sides)
    received = sent = 0
    for row in sides.trace("server").rows:
        if row.source[1] == sides.run.server_port:
            sent += row.payload
            check(sent <= 3 * received, f"{sent} bytes sent after {received} received")
        elif HANDSHAKE in row.types:
            break
        else:
            received += row.payload
    check(sent > 0, "the server sent nothing before the client's first Handshake packet")
    flight = max(int(end, 0) for _, _, _, row in packets(sides.from_server, HANDSHAKE)
                 for end in row.all("quic.crypto.offset"))
    check(flight >= 4000, f"the server's flight ends at {flight}: is that the long chain?")


def many_connections(sides):
    check_handshakes(sides, 50)


def only_ipv6(sides):
    one_connection(sides)
    for side in ("client", "server"):
        check(not [row for row in sides.trace(side).rows if row.get("ip.src")], "there is IPv4")


def version_2(sides):
    check_close(sides)
    first = {version for version, _, _, _ in packets(sides.from_client, INITIAL)}
    check(V1 in first, f"the client starts with {[hex(v) for v in first]}")
    check(V2 in {version for version, _, _, _ in packets(sides.from_server, INITIAL)},
          "the server's Initial packets are not version 2")
    for who, rows in (("client", sides.from_client), ("server", sides.from_server)):
        used = {version for version, _, _, _ in packets(rows, HANDSHAKE)}
        check(used == {V2}, f"the {who}'s Handshake packets are of {[hex(v) for v in used]}")


def paths_validated(rows, client_rows, new_dcid=False):
    """On each new path the server starts with a PATH_CHALLENGE, and every one is answered."""
    seen, last, challenges = set(), None, set()
    for row in rows:
        path = row.target
        if last is not None and path != last and path not in seen:
            check(row.get("quic.path_challenge.data"),
                  f"the server's first packet to {path} has no PATH_CHALLENGE")
            challenges.add(row.get("quic.path_challenge.data"))
        seen.add(path)
        last = path
    check(len(seen) > 1, "there was one path alone")
    answers = {data for row in client_rows for data in row.all("quic.path_response.data")}
    check(challenges <= answers, "a PATH_CHALLENGE was not answered")
    return seen


def rebound_port(sides):
    one_connection(sides)
    paths_validated(sides.from_server, sides.from_client)


def rebound_address(sides):
    one_connection(sides)
    seen = paths_validated(sides.from_server, sides.from_client)
    check(len({address for address, _ in seen}) > 1, "there was one address alone")


def migrated(sides):
    """The client has gone on to the server's other address, with another connection ID."""
    check_handshakes(sides, 1)
    check_close(sides)
    first = {}
    for row in sides.from_client:
        if not row.types:  # short headers
            first.setdefault(row.target, row.get("quic.dcid"))
    check(len(first) > 1, "the client has stayed with one address of the server")
    check(len(set(first.values())) == len(first), "the client has kept its connection ID")
    check([row for row in sides.from_client if row.get("quic.path_challenge.data")],
          "the client sends no PATH_CHALLENGE")


# ---- the cases ----------------------------------------------------------------------------------


@dataclass
class Case:
    name: str
    files: list  # sizes
    shown: object
    client: str = "transfer"  # TESTCASE
    server: str = "transfer"
    link: list = field(default_factory=lambda: LINE)
    name_length: int = 12
    chain: int = 1
    ipv6: bool = False
    # No link, but a capture on loopback: a client goes where the server's parameters say, and that
    # is no address of a link's.
    direct: bool = False
    connections: str = "once"       # of ngtcp2's client: once, each, twice
    ngtcp2_client: list = field(default_factory=list)
    ngtcp2_server: list = field(default_factory=list)
    # Why ngtcp2 0.12.1 cannot play it, in a role.
    not_client: str = ""
    not_server: str = ""


CHACHA20 = "--ciphers=NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+CHACHA20-POLY1305"
BURSTS = [*LINE, "burst=3"]
DRAFT = "version 2 of ngtcp2 0.12.1 is the draft's, 0x709a50c4"
STALLS = "a download of ngtcp2 0.12.1 stalls after a NAT rebinding, between its own two ends too"

CASES = [
    # The slow ones first: cases run side by side.
    Case("handshakeloss", [KB] * 50, many_connections, "multiconnect", "multiconnect",
         [*BURSTS, "loss=30"], connections="each"),
    Case("handshakecorruption", [KB] * 50, many_connections, "multiconnect", "multiconnect",
         [*BURSTS, "corrupt=30"], connections="each"),
    Case("blackhole", [10 * MB], one_connection,
         link=[*LINE, "dark-after=5000", "dark-for=2000"]),
    Case("rebind-port", [10 * MB], rebound_port, not_server=STALLS,
         link=[*LINE, "--rebind", "port", "--rebind-after", "1000", "--rebind-every", "5000"]),
    Case("rebind-addr", [10 * MB], rebound_address, not_server=STALLS,
         link=[*LINE, "--rebind", "addr", "--rebind-after", "1000", "--rebind-every", "5000"]),
    Case("transfer", [2 * MB, 3 * MB, 5 * MB], windows_used,
         ngtcp2_client=["--max-data=256K", "--max-stream-data-bidi-local=128K", "--max-window=0",
                        "--max-stream-window=0"]),
    Case("longrtt", [KB], long_rtt, "handshake", "handshake",
         ["delay=750", "rate=10000", "queue=25"]),
    Case("multiplexing", [32] * 1999, stream_limit),
    Case("transferloss", [2 * MB], one_connection, link=[*BURSTS, "loss=2"]),
    Case("transfercorruption", [2 * MB], one_connection, link=[*BURSTS, "corrupt=2"]),
    Case("handshake", [KB], no_retry, "handshake", "handshake"),
    Case("chacha20", [3 * MB], only_chacha20, "chacha20", "chacha20", ngtcp2_client=[CHACHA20]),
    Case("retry", [10 * KB], retry_token, "retry", "retry", ngtcp2_server=["-V"]),
    Case("resumption", [5 * KB, 10 * KB], resumed, "resumption", "resumption", connections="twice",
         ngtcp2_client=["--disable-early-data"]),
    Case("zerortt", [32] * 40, early_data, "zerortt", "zerortt", name_length=250,
         connections="twice"),
    Case("http3", [5 * KB, 10 * KB, 500 * KB], one_connection, "http3", "http3"),
    Case("keyupdate", [3 * MB], both_phases, "keyupdate", "transfer",
         ngtcp2_client=["--key-update=100ms"]),
    Case("ecn", [100 * KB], ecn_both_ways, "ecn", "ecn", ngtcp2_client=["--no-pmtud"],
         ngtcp2_server=["--no-pmtud"]),
    Case("amplificationlimit", [5 * KB], amplification, chain=9,
         link=[*LINE, "up.first-lost=2", "up.last-lost=7"]),
    Case("ipv6", [5 * KB, 10 * KB], only_ipv6, ipv6=True),
    Case("v2", [KB], version_2, "v2", "v2", not_client=DRAFT, not_server=DRAFT),
    Case("connectionmigration", [2 * MB], migrated, "transfer", "connectionmigration", direct=True),
]
PAIRS = ("leat→leat", "leat→ngtcp2", "ngtcp2→leat")  # server→client


# ---- certificates -------------------------------------------------------------------------------


class Certificates:
    """Chains of so many certificates below an authority, made once each: cert.pem, priv.key, ca.pem."""

    def __init__(self, base):
        self.base, self.lock, self.made = base, threading.Lock(), {}

    def openssl(self, *args):
        done = subprocess.run([program("openssl"), *args], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        check(done.returncode == 0, f"openssl {args[0]}: {done.stdout}")

    def one(self, folder, name, issuer, extensions):
        """A key and a certificate by the issuer, or by itself."""
        # Long keys make the chain long.
        algorithm = ["rsa:2048"] if folder.endswith("9") else ["ec", "-pkeyopt",
                                                               "ec_paramgen_curve:prime256v1"]
        at = os.path.join(folder, name)
        with open(at + ".ext", "w") as f:
            f.write(extensions)
        self.openssl("req", "-new", "-newkey", *algorithm, "-nodes", "-subj", f"/CN=leat {name}",
                     "-keyout", at + ".key", "-out", at + ".csr")
        sign = (["-CA", issuer + ".pem", "-CAkey", issuer + ".key", "-CAcreateserial"] if issuer
                else ["-signkey", at + ".key"])
        self.openssl("x509", "-req", "-in", at + ".csr", *sign, "-days", "30", "-extfile",
                     at + ".ext", "-out", at + ".pem")
        return at

    def folder(self, length):
        with self.lock:
            if length not in self.made:
                self.made[length] = self.make(length)
            return self.made[length]

    def make(self, length):
        folder = os.path.join(self.base, f"certs-{length}")
        os.mkdir(folder)
        authority = "basicConstraints=critical,CA:true\nkeyUsage=critical,keyCertSign\n"
        issuer = self.one(folder, "ca", None, authority)
        chain = []
        for i in range(1, length):
            issuer = self.one(folder, f"intermediate{i}", issuer, authority)
            chain.insert(0, issuer)
        leaf = self.one(folder, "leaf", issuer,
                        "subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1\n"
                        "keyUsage=critical,digitalSignature\nextendedKeyUsage=serverAuth\n")
        with open(os.path.join(folder, "cert.pem"), "w") as out:
            for at in [leaf, *chain]:
                with open(at + ".pem") as f:
                    out.write(f.read())
        shutil.copy(leaf + ".key", os.path.join(folder, "priv.key"))
        return folder


# ---- a run of one case by one pair ----------------------------------------------------------------


class Run:
    def __init__(self, case, pair, base, certificates, udplink):
        self.case, self.pair, self.udplink = case, pair, udplink
        self.server_is_leat = pair.startswith("leat")
        self.client_is_leat = pair.endswith("leat")
        self.dir = tempfile.mkdtemp(prefix=f"{case.name}.{pair.replace('→', '-')}.", dir=base)
        self.certs = certificates.folder(case.chain)
        self.processes = []
        self.host = "::1" if case.ipv6 else "127.0.0.1"
        self.preferred_port = None
        self.alpn = "hq-interop" if self.server_is_leat and self.client_is_leat else "h3"

    def path(self, name):
        return os.path.join(self.dir, name)

    def at(self, port):
        return f"[::1]:{port}" if self.case.ipv6 else f"127.0.0.1:{port}"

    def start(self, name, command, env=None):
        process = Process(self.path(f"{len(self.processes):02}-{name}.log"), command, env)
        self.processes.append(process)
        return process

    def make_files(self):
        for name in ("www", "downloads"):
            os.mkdir(self.path(name))
        letters = random.Random(self.case.name)
        self.files = {}
        for size in self.case.files:
            name = "".join(letters.choices(string.ascii_lowercase, k=self.case.name_length))
            self.files[name] = random_file(self.path(f"www/{name}"), size)

    def leat_env(self, role, testcase):
        alpn = {} if self.case.name == "http3" else {"ALPN": self.alpn}
        return {"ROLE": role, "TESTCASE": testcase, "LEAT": peers.LEAT, "WWW": self.path("www"),
                "DOWNLOADS": self.path("downloads"), "CERTS": self.certs,
                "SSLKEYLOGFILE": self.path(f"keys.{role}"), "LISTEN": self.at(0),
                "PREFERRED": self.at(self.preferred_port),
                f"{role.upper()}_PARAMS": "--no-offload" if self.case.direct else "", **alpn}

    def start_server(self):
        if self.server_is_leat:
            server = self.start("server", [ENDPOINT], self.leat_env("server", self.case.server))
            try:
                found = server.wait_line(r"^listening on \S*:(\d+)$|^unsupported: (.*)")
            except AssertionError as error:
                raise Failed(str(error)) from None
            if found.group(2):
                raise Unsupported(found.group(2))
            self.server_port = int(found.group(1))
            return server
        if self.case.not_server:
            raise Unsupported(self.case.not_server)
        preferred = ([f"--preferred-ipv4-addr={self.at(self.preferred_port)}",
                      "--max-gso-dgrams=1"] if self.case.direct else [])
        server = self.start("server", [
            program("gtlsserver"), "-q", "--no-quic-dump", "--no-http-dump", "-d",
            self.path("www"), "--timeout=60s", "--handshake-timeout=60s",
            *self.case.ngtcp2_server, *preferred, self.host, "0", self.certs + "/priv.key",
            self.certs + "/cert.pem"], {"SSLKEYLOGFILE": self.path("keys.server")})
        self.server_port = wait_udp_port(server, but=self.preferred_port)
        return server

    def choose_preferred(self):
        """A port for the server's other address: free, and one that the system gives nobody."""
        while True:
            self.preferred_port = random.randrange(61000, 65536)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
                try:
                    sock.bind(("127.0.0.1", self.preferred_port))
                    return
                except OSError:
                    pass

    def start_capture(self):
        reason = may_capture()
        if reason:
            raise Unsupported(f"this user cannot capture on loopback: {reason}")
        self.link_port = self.server_port
        return Capture(self, "client.pcap", [self.server_port, self.preferred_port])

    def start_link(self):
        link = self.start("link", [
            self.udplink, "--to", self.at(self.server_port), "--seed",
            str(sum(map(ord, self.case.name + self.pair))), "--pcap-client",
            self.path("client.pcap"), "--pcap-server", self.path("server.pcap"), *self.case.link])
        self.link_port = int(link.wait_line(r"^listening on \S*:(\d+)$").group(1))
        return link

    def leat_client(self):
        env = self.leat_env("client", self.case.client) | {
            "CONNECT_TO": self.at(self.link_port),
            "REQUESTS": " ".join(f"https://localhost:{self.link_port}/{name}"
                                 for name in self.files)}
        client = self.start("client", [ENDPOINT], env)
        status = client.wait(TRANSFER_PATIENCE)
        if status == UNKNOWN:
            raise Unsupported(client.lines[-1].removeprefix("unsupported: ").strip())
        check(status == 0, f"the client's exit status is {status}: "
                           f"{''.join(line for line in client.lines if line.startswith('leat:'))}")

    def ngtcp2_fetch(self, names, *options):
        client = self.start("client", [
            program("gtlsclient"), "-q", "--no-quic-dump", "--no-http-dump",
            "--exit-on-all-streams-close", "--timeout=60s", "--handshake-timeout=60s",
            f"--download={self.path('downloads')}", "--sni=localhost", *self.case.ngtcp2_client,
            *options, self.host, str(self.link_port),
            *[f"https://localhost:{self.link_port}/{name}" for name in names]],
            {"SSLKEYLOGFILE": self.path("keys.client")})
        client.wait(TRANSFER_PATIENCE)  # its exit status says nothing

    def ngtcp2_client(self):
        if self.case.not_client:
            raise Unsupported(self.case.not_client)
        names = list(self.files)
        if self.case.connections == "once":
            self.ngtcp2_fetch(names)
        elif self.case.connections == "each":
            for name in names:
                self.ngtcp2_fetch([name])
        else:
            session = [f"--session-file={self.path('session')}", f"--tp-file={self.path('tp')}"]
            self.ngtcp2_fetch(names[:1], *session)
            self.ngtcp2_fetch(names[1:], *session)

    def check_files(self):
        for name, digest in self.files.items():
            path = self.path(f"downloads/{name}")
            check(os.path.exists(path), f"{name[:20]} did not arrive")
            size, whole = os.path.getsize(path), os.path.getsize(self.path(f"www/{name}"))
            check(size == whole, f"{name[:20]} arrived with {size} of {whole} bytes")
            check(sha256(path) == digest, f"{name[:20]} arrived with other bytes")

    def play(self):
        self.make_files()
        if self.case.direct:
            self.choose_preferred()
        server = self.start_server()
        link = self.start_capture() if self.case.direct else self.start_link()
        if self.client_is_leat:
            self.leat_client()
        else:
            self.ngtcp2_client()
        self.check_files()
        status = server.stop()
        if self.server_is_leat:
            check(status == 0, f"the server's exit status is {status}")
        if self.case.direct:
            shutil.copy(link.finish(), self.path("server.pcap"))
        else:
            check(link.stop() == 0, "the link failed")
        self.case.shown(Sides(self))

    def result(self):
        """(cell, reason, seconds)"""
        began = time.monotonic()
        cell = "FAIL"
        try:
            self.play()
            cell, reason = "ok", ""
        except Unsupported as why:
            cell, reason = "unsupported", str(why)
        except Exception as why:  # whatever it is, it is this case's, and printed
            cell, reason = "FAIL", f"{str(why) or repr(why)}"
        finally:
            for process in self.processes:
                if process.name.endswith("link.log") and cell == "FAIL":
                    process.stop()  # so that its captures are whole
                process.kill()
        return cell, reason, time.monotonic() - began


# ---- all of them --------------------------------------------------------------------------------


def print_matrix(results, pairs):
    width = max(len(case.name) for case in CASES)
    print(f"\n{'server→client':{width}}  " + "  ".join(f"{pair:18}" for pair in pairs))
    for case in CASES:
        cells = [results.get((case.name, pair)) for pair in pairs]
        if any(cells):
            texts = [f"{cell[0]} ({cell[2]:.1f} s)" if cell else "-" for cell in cells]
            print(f"{case.name:{width}}  " + "  ".join(f"{text:18}" for text in texts))
    print()
    for (name, pair), (cell, reason, _) in results.items():
        if reason:
            print(f"{cell}: {name}, {pair}: {reason}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("leat")
    parser.add_argument("udplink")
    parser.add_argument("--pairs", default=",".join(PAIRS))
    parser.add_argument("--cases", default=",".join(case.name for case in CASES))
    parser.add_argument("--jobs", type=int, default=6)
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args(ARGV)
    peers.LEAT = os.path.abspath(args.leat)
    pairs = args.pairs.replace("->", "→").split(",")
    wanted = args.cases.split(",")
    for name in [*wanted, *pairs]:
        if name not in PAIRS and name not in [case.name for case in CASES]:
            parser.error(f"what is {name}?")
    base = tempfile.mkdtemp(prefix="leat-matrix.")
    certificates = Certificates(base)
    results, failed = {}, False
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        runs = {}
        for case in CASES:
            for pair in pairs if case.name in wanted else []:
                runs[pool.submit(lambda case=case, pair=pair: one(case, pair, base, certificates,
                                                                  args))] = (case.name, pair)
        for future in concurrent.futures.as_completed(runs):
            name, pair = runs[future]
            results[name, pair] = cell, reason, seconds = future.result()
            failed |= cell == "FAIL"
            print(f"{name}, {pair}: {cell} ({seconds:.1f} s) {reason}", flush=True)
    print_matrix(results, pairs)
    if failed or args.keep:
        print(f"folders are kept in {base}")
    else:
        shutil.rmtree(base)
    return 1 if failed else 0


def one(case, pair, base, certificates, args):
    run = Run(case, pair, base, certificates, args.udplink)
    result = run.result()
    if result[0] != "FAIL" and not args.keep:
        shutil.rmtree(run.dir)
    return result


if __name__ == "__main__":
    sys.exit(main())

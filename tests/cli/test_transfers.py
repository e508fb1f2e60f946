"""Files arrive whole, whatever the protocol, the address family, the size and the options.

SPDX-License-Identifier: MIT
"""
import os
import pty
import re
import signal
import subprocess
import unittest

from harness import (LEAT, OK, USAGE, Case, environment, finish, get, has_ipv6, main, run,
                     sha256, start_get)

PROTOCOLS = ("h3", "hq-interop")
SIZES = (0, 1, 63, 64, 1199, 1200, 16383, 16384, 65535, 65536, 65537, 300000, 2500000)


class Transfers(Case):
    def fetch_sizes(self, server, protocol):
        for size in SIZES:
            with self.subTest(protocol=protocol, size=size):
                data = os.urandom(size)
                self.put(f"f{size}", data)
                done = get(server.url(f"/f{size}"), "-k", "--alpn", protocol, "-o",
                           self.target(f"{protocol}{size}"))
                self.assert_code(done, OK)
                self.assertEqual(self.read(f"{protocol}{size}"), data)
                self.assertEqual(done.err, "")  # no terminal: nothing to say

    def test_sizes_over_h3(self):
        self.fetch_sizes(self.serve(), "h3")

    def test_sizes_over_hq_interop(self):
        self.fetch_sizes(self.serve(), "hq-interop")

    @unittest.skipUnless(has_ipv6(), "this machine has no IPv6 on loopback")
    def test_ipv6(self):
        data = os.urandom(100000)
        self.put("file", data)
        server = self.serve(listen="[::1]:0")
        for protocol in PROTOCOLS:
            self.assert_code(get(server.url("/file"), "-k", "--alpn", protocol, "-o",
                                 self.target(protocol)), OK)
            self.assertEqual(self.read(protocol), data)

    @unittest.skipUnless(has_ipv6(), "this machine has no IPv6 on loopback")
    def test_one_socket_for_both_families(self):
        self.put("file", b"x" * 5000)
        server = self.serve(listen=":0")
        self.assert_code(get(server.url("/file", "127.0.0.1"), "-k", "-o", self.target("four")), OK)
        self.assert_code(get(server.url("/file", "[::1]"), "-k", "-o", self.target("six")), OK)
        self.assertEqual(self.read("four"), self.read("six"))

    def test_a_name_is_looked_up_and_an_address_without_an_answer_passed_over(self):
        self.put("file", b"here")
        server = self.serve()  # localhost may be ::1 first: nobody is there
        self.assert_code(get(server.url("/file", "localhost"), "-k", "-o", self.target()), OK)
        self.assertEqual(self.read(), b"here")

    def test_many_files_on_one_connection(self):
        count = 1999
        for i in range(count):
            self.put(f"many/{i:04}", b"%032d" % i)
        for protocol in PROTOCOLS:
            server = self.serve("--stats", "--once")
            urls = [server.url(f"/many/{i:04}") for i in range(count)]
            folder = os.path.join(self.got, protocol)
            os.mkdir(folder)
            done = get(*urls, "-k", "--alpn", protocol, "-O", "--output-dir", folder, "--stats")
            self.assert_code(done, OK)
            self.assertEqual(sorted(os.listdir(folder)), [f"{i:04}" for i in range(count)])
            for i in range(0, count, 97):
                with open(os.path.join(folder, f"{i:04}"), "rb") as f:
                    self.assertEqual(f.read(), b"%032d" % i)
            self.assertGreaterEqual(done.stat("streams_opened"), count)
            self.assertEqual(server.process.wait(60), 0)  # --once: that was the only connection

    def test_threads_share_one_address(self):
        self.put("file", bytes(range(256)) * 1000)
        server = self.serve("--threads", "3")
        gets = [start_get(server.url("/file"), "-k", "-o", self.target(str(i))) for i in range(9)]
        for i, process in enumerate(gets):  # each is a connection, to whichever thread it falls
            self.assert_code(finish(process), OK)
            self.assertEqual(sha256(self.target(str(i))), sha256(os.path.join(self.www, "file")))
        self.assertEqual(server.stop(), 0)

    def test_threads_end_together(self):
        self.put("file", b"here")
        server = self.serve("--threads", "3", "--once")
        self.assert_code(get(server.url("/file"), "-k", "-o", self.target()), OK)
        self.assertEqual(server.process.wait(60), 0)

    def test_threads_write_no_qlog(self):
        done = run("serve", self.www, "--threads", "2", "--qlog", self.dir, "--listen",
                   "127.0.0.1:0")
        self.assert_code(done, USAGE)

    def test_large_file(self):
        size = 64 << 20
        path = self.put("large", b"")
        with open("/dev/urandom", "rb") as source, open(path, "wb") as f:
            for _ in range(size >> 20):
                f.write(source.read(1 << 20))
        server = self.serve()
        done = get(server.url("/large"), "-k", "-o", self.target(), "--stats")
        self.assert_code(done, OK)
        self.assertEqual(sha256(self.target()), sha256(path))
        self.assertEqual(done.stat("body_bytes"), size)

    def test_sizes_over_4_gib_are_told_exactly(self):
        size = (5 << 30) + 123
        with open(os.path.join(self.www, "sparse"), "wb") as f:
            f.truncate(size)
        done = get(self.serve().url("/sparse"), "-k", "-I")
        self.assert_code(done, OK)
        self.assertIn(f"content-length: {size}\n", done.out.decode())

    def test_head(self):
        self.put("page.html", b"<p>hello")
        server = self.serve()
        done = get(server.url("/page.html"), "-k", "--head")
        self.assert_code(done, OK)
        self.assertIn("HTTP/3 200\n", done.out.decode())
        self.assertIn("content-length: 8\n", done.out.decode())
        self.assertIn("content-type: text/html", done.out.decode())
        self.assertNotIn("hello", done.out.decode())
        self.assert_code(get(server.url("/none"), "-k", "-I"), 3)
        # hq-interop, which has no HEAD, is not even offered.
        self.assert_code(get(server.url("/page.html"), "-k", "-I", "--alpn", "hq-interop,h3"), OK)

    def test_standard_output(self):
        self.put("a", b"first")
        self.put("b", b"second")
        server = self.serve()
        self.assertEqual(get(server.url("/a"), "-k").out, b"first")
        self.assertEqual(get(server.url("/a"), "-k", "-o", "-").out, b"first")
        urls = [server.url("/a"), server.url("/b")] * 10
        self.assertEqual(get(*urls, "-k").out, b"firstsecond" * 10)

    def test_remote_names_are_decoded_and_stay_in_the_folder(self):
        self.put("a b", b"x")
        server = self.serve()
        self.assert_code(get(server.url("/a%20b?q=/c"), "-k", "-O", cwd=self.got), OK)
        self.assertEqual(os.listdir(self.got), ["a b"])
        for path in ("/", "/..", "/a%2fb", "/%00", "/.", "/a%0Ab", "/%1b[2J", "/%7f"):
            done = get(server.url(path), "-k", "-O", cwd=self.got)
            self.assert_code(done, USAGE)
            self.assertIn("nothing that can be a file's name", done.err)

    def test_a_remote_name_of_one_dash_is_a_file(self):
        self.put("-", b"dash")
        done = get(self.serve().url("/-"), "-k", "-O", cwd=self.got)
        self.assert_code(done, OK)
        self.assertEqual(done.out, b"")
        self.assertEqual(self.read("-"), b"dash")

    def test_a_link_is_written_through(self):
        self.put("file", b"new")
        server = self.serve()
        self.put("old", b"old", self.got)
        for name, to, landed in (("link", "old", "old"), ("dangling", "fresh", "fresh")):
            os.symlink(to, self.target(name))
            self.assert_code(get(server.url("/file"), "-k", "-o", self.target(name)), OK)
            self.assertEqual(os.readlink(self.target(name)), to)
            self.assertEqual(self.read(landed), b"new")

    def test_links_to_open_descriptors_are_written_through(self):
        self.put("file", b"new")
        server = self.serve()
        os.symlink("/proc/self/fd/1", self.target("link"))
        for name in (self.target("link"), "/dev/stdout", "/dev/fd/1"):
            done = get(server.url("/file"), "-k", "-o", name)  # a pipe
            self.assert_code(done, OK)
            self.assertEqual(done.out, b"new")
            with open(self.target("out"), "wb") as out:  # a file, which already has something
                out.write(b"first ")
                out.flush()
                client = subprocess.Popen([LEAT, "get", server.url("/file"), "-k", "-o", name],
                                          stdout=out, env=environment())
                self.assertEqual(client.wait(60), OK)
            self.assertEqual(self.read("out"), b"first new")
        self.assertTrue(os.path.islink(self.target("link")))

    def test_an_old_file_is_replaced_only_by_a_whole_one(self):
        self.put("file", b"new")
        server = self.serve()
        self.put("file", b"old", self.got)
        self.assert_code(get(server.url("/none"), "-k", "-o", self.target()), 3)
        self.assertEqual(self.read(), b"old")
        self.assert_code(get(server.url("/file"), "-k", "-o", self.target()), OK)
        self.assertEqual(self.read(), b"new")
        self.assertEqual(os.listdir(self.got), ["file"])

    def test_options_of_the_transport(self):
        data = os.urandom(3000000)
        self.put("file", data)
        for server_options, options, check in (
                (["--retry"], [], None),
                ([], ["--ciphers", "aes-256-gcm"], "AES_256_GCM"),
                ([], ["--ciphers", "chacha20-poly1305"], "CHACHA20"),
                ([], ["--ciphers", "aes-128-gcm"], "AES_128_GCM"),
                ([], ["--ciphers", "chacha20,aes-128-gcm,chacha20-poly1305,aes-256-gcm"], "CHACHA20"),
                ([], ["--alpn", "h3,h3,hq-interop"], None),
                ([], ["--groups", "p256"], None),
                ([], ["--groups", "p384"], None),
                ([], ["--window", "64k"], None),
                (["--window", "128M"], ["--window", "128M"], None),
                ([], ["--window", "1024"], None),
                (["--send-buffer", "16k"], [], None),
                (["--udp-payload", "1200"], ["--udp-payload", "1200"], None),
                (["--no-offload"], ["--no-offload"], None),
                # The client of a download sends little but acknowledgements, as few as one a batch.
                ([], ["--key-update", "3"], "key_updates"),
                (["--key-update", "100"], [], "key_updates"),
                ([], ["--connect-to", "SERVER"], None)):
            for protocol in PROTOCOLS:
                with self.subTest(server=server_options, client=options, protocol=protocol):
                    server = self.serve(*server_options)
                    url = server.url("/file")
                    if "--connect-to" in options:
                        url = "https://nowhere.invalid/file"
                    done = get(url, "-k", "--alpn", protocol, "-o", self.target(), "--stats",
                               *(server.address if o == "SERVER" else o for o in options))
                    self.assert_code(done, OK)
                    self.assertEqual(self.read(), data)
                    if check == "key_updates":
                        self.assertGreater(done.stat("key_updates"), 0)
                    elif check:
                        self.assertIn(check, done.err.replace("-", "_"))
                    self.assertEqual(server.stop(), 0)

    def test_stats_name_what_matters(self):
        self.put("file", os.urandom(200000))
        server = self.serve("--stats", "--once")
        done = get(server.url("/file"), "-k", "-o", self.target(), "--stats")
        server.process.wait(60)
        server.reader.join(60)
        for text in (done.err, server.text()):
            for name in ("rtt_smoothed", "packets_lost", "cwnd", "packets_sent", "bytes_received",
                         "memory_high", "mem_system"):
                self.assertRegex(text, rf"(?m)^ *{name}: *[0-9]")
            for name, value in (("version", "v1"), ("congestion", "cubic"), ("ecn", "capable"),
                                ("datagram_size", "[0-9]{4}"), ("ecn_ce", "0")):
                self.assertRegex(text, rf"(?m)^ *{name}: *{value}  ")
            ends = {m.end(1) for m in map(re.compile(r" +\w+: +(\S+)  ").match, text.splitlines()) if m}
            self.assertEqual(len(ends), 1, text)  # the values stand in one column

    def test_versions_may_be_repeated(self):
        """The last list counts, and in it the first of each."""
        self.put("file", b"x")
        server = self.serve("--versions", "v1", "--versions", "v2,v1,v2,2")
        for options, version in ((["--versions", "v2", "--versions", "v1,v1"], "v1"),
                                 (["--versions", "1,v2,v1"], "v2")):
            done = get(server.url("/file"), "-k", "-o", self.target(), "--stats", *options)
            self.assert_code(done, OK)
            self.assertRegex(done.err, rf"(?m)^ *version: *{version}  ")

    def test_the_log_tells_what_happened_by_levels(self):
        self.put("file", os.urandom(200000))
        server = self.serve("--log-level", "info")
        for level in ("error", "INFO", "debug", "trace"):
            done = get(server.url("/file"), "-k", "-o", self.target(), "--log-level", level, "--key-update-at", "1")
            self.assert_code(done, OK)
            lines = done.err.splitlines()
            said = [bool(re.search(text, done.err, re.M)) for text in (
                r"^INFO \S+ client \w+ HANDSHAKE complete, QUIC v1, h3, TLS_AES_128_GCM_SHA256$",
                r"^DEBUG \S+ client \w+ KEY_UPDATED server_1rtt_secret 1, local_update$",
                r"^TRACE \S+ client \w+ PACKET_SENT 1RTT ")]
            known = ("error", "INFO", "debug", "trace").index(level)
            self.assertEqual(said, [known >= n for n in (1, 2, 3)], done.err)
            if level == "error":
                self.assertEqual([line for line in lines if line.startswith("ERROR")], [])
        self.assertEqual(server.stop(), 0)
        self.assertEqual(len(re.findall(r"^INFO .* CONNECTION_CLOSED by the peer, application code 0x100",
                                        server.text(), re.M)), 4)
        self.assertNotIn("ERROR", server.text())
        done = run("serve", self.www, "--log-level", "loud")
        self.assert_code(done, USAGE)
        self.assertIn("--log-level does not know 'loud'", done.err)

    def test_key_log_and_qlog(self):
        self.put("file", b"x" * 1000)
        keys, qlogs = os.path.join(self.dir, "keys"), os.path.join(self.dir, "qlogs")
        os.mkdir(qlogs)
        server = self.serve(env=environment(QLOGDIR=qlogs))
        env = environment(SSLKEYLOGFILE=keys, QLOGDIR=qlogs)
        self.assert_code(get(server.url("/file"), "-k", "-o", self.target(), env=env), OK)
        self.assertEqual(server.stop(), 0)
        with open(keys) as f:
            text = f.read()
        for label in ("CLIENT_HANDSHAKE_TRAFFIC_SECRET", "SERVER_HANDSHAKE_TRAFFIC_SECRET",
                      "CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0"):
            self.assertEqual(text.count(label + " "), 1)
        names = sorted(os.listdir(qlogs))
        self.assertEqual(len(names), 2)  # one a side
        for name in names:
            with open(os.path.join(qlogs, name), "rb") as f:
                self.assertIn(b"packet_received", f.read())

    def test_a_trusted_certificate_needs_no_insecure(self):
        cert, key = self.certificate("localhost")
        self.put("file", b"safe")
        server = self.serve("--cert", cert, "--key", key)
        done = get(server.url("/file", "localhost"), "--ca", cert, "-o", self.target())
        self.assert_code(done, OK)
        self.assertEqual(self.read(), b"safe")

    def test_the_server_finishes_what_runs_before_it_ends(self):
        data = os.urandom(4 << 20)
        self.put("file", data)
        server = self.serve()
        link = self.link(server, 200000)
        client = start_get(f"https://127.0.0.1:{link.port}/file", "-k", "-o", self.target())
        self.assertTrue(link.stopped.wait(60))
        server.process.send_signal(signal.SIGTERM)
        link.go_on()
        self.assert_code(finish(client), OK)
        self.assertEqual(self.read(), data)
        self.assertEqual(server.process.wait(60), 0)

    def test_progress_is_drawn_on_a_terminal(self):
        self.put("file", os.urandom(4 << 20))
        link = self.link(self.serve(), 300000)
        terminal, end = pty.openpty()
        client = subprocess.Popen([LEAT, "get", f"https://127.0.0.1:{link.port}/file", "-k", "-o",
                                   self.target()], stderr=end, env=environment())
        os.close(end)
        seen = ""
        while not re.search(r"\d %, [0-9.]+ KiB of 4.00 MiB, [0-9.]+ [KM]?i?B/s, \d+:\d\d left", seen):
            seen += os.read(terminal, 4096).decode()
        link.go_on()
        self.assertEqual(client.wait(60), 0)
        os.close(terminal)

    def test_help_and_version(self):
        for args in (["help"], ["--help"], ["help", "get"], ["get", "--help"], ["serve", "--help"],
                     ["version"], ["--version"]):
            done = run(*args)
            self.assert_code(done, OK)
            self.assertEqual(done.err, "")
        self.assertRegex(run("version").out.decode(), r"^leat \d+\.\d+\.\d+\n$")
        for option in ("--insecure", "--key-update", "Exit codes"):
            self.assertIn(option, run("get", "--help").out.decode())

    def test_the_manual_names_every_option_and_exit_code(self):
        page = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/leat.1")
        with open(page) as f:
            manual = f.read()
        parts = {"perf": ("server", "client"), "rtp": ("send", "recv", "feedback", "dump", "play", "plot")}
        commands = re.findall(r"^ +(\w+) +\S", run("help").out.decode(), re.M)
        self.assertIn("compare", commands)
        for words in [[command, *part] for command in commands if command not in ("version", "help")
                      for part in [[p] for p in parts.get(command, ())] or [[]]]:
            text = run(*words, "--help").out.decode()
            self.assertIn(f".Cm {words[0]}\n", manual)
            options = re.findall(r"^ +(?:-(\w), +)?--([a-z0-9-]+)", text, re.M)
            self.assertGreater(len(options), 2, words)
            for letter, name in options:
                self.assertRegex(manual, rf"Fl -{name}\b", words)
                if letter:
                    self.assertIn(f"Fl {letter} , Fl -{name}", manual)
            for code, meaning in re.findall(r"^ +(\d+) +(\S.*)$", text.split("Exit codes")[1], re.M):
                self.assertIn(f".It {code}\n{meaning}\n", manual)

    def certificate(self, name):
        import certificates
        return certificates.make(self.dir, name)


if __name__ == "__main__":
    main()

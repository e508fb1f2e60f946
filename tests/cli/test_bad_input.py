"""Bad input gets a clear message, an exit code of its own, and leaves nothing behind.

SPDX-License-Identifier: MIT
"""
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import time
import unittest

import certificates
import restrictions
from harness import (ADDRESS, BROKEN, CERTIFICATE, FILE, INTERRUPTED, LEAT, NOT_FOUND, OK, PATIENCE, STATUS,
                     TIMEOUT, USAGE, Case, environment, finish, get, main, run, start_get)

PROTOCOLS = ("h3", "hq-interop")
SILENCE = "3"  # seconds that a connection survives: more than a busy machine makes anybody wait


class Arguments(Case):
    def assert_usage(self, *args, says=None):
        done = run(*args)
        self.assert_code(done, USAGE)
        self.assertTrue(done.err.startswith(("leat: ", "usage: ")), done.err)
        self.assertEqual(done.out, b"")
        if says:
            self.assertIn(says, done.err)

    def test_commands_and_options(self):
        self.assert_usage()
        self.assert_usage("fetch", says="no such command: fetch")
        self.assert_usage("help", "fetch")
        self.assert_usage("get", says="no URL")
        self.assert_usage("get", "--nonsense", "https://a/", says="--nonsense")
        self.assert_usage("get", "-Z", "https://a/", says="-Z")
        self.assert_usage("get", "https://a/", "-o", says="missing")
        self.assert_usage("get", "https://a/", "-o", "x", "-o", "y", says="more -o")
        self.assert_usage("get", "https://a/", "-4", "-6")
        self.assert_usage("get", "https://a/x", "https://b/x", "-O", says="two downloads")
        self.assert_usage("get", "https://a/", "--alpn", "h2", says="h2")
        self.assert_usage("get", "https://a/", "--ciphers", "aes-128-gcm,rc4", says="rc4")
        self.assert_usage("get", "https://a/", "--groups", "p224", says="p224")
        self.assert_usage("get", "https://a/x", "https://b/x", "-o", self.got + "/l", "-o",
                          self.got + "/../got/l", says="two downloads")
        os.symlink("l", self.got + "/link")
        self.assert_usage("get", "https://a/x", "https://b/x", "-o", self.got + "/l", "-o",
                          self.got + "/link", says="two downloads")
        self.assert_usage("get", "https://a/", "-I", "--alpn", "hq-interop", says="--head needs h3")
        self.assert_usage("get", "https://a/", "-I", "-o", "x", says="--head prints the head")
        self.assert_usage("get", "https://a/x", "-I", "-O", says="--head prints the head")
        self.assert_usage("get", "https://a/", "--connect-timeout", "-1")
        self.assert_usage("get", "https://a/", "--connect-timeout", "0", says="more than no time")
        self.assert_usage("serve", "--handshake-timeout", "0.0000000001", says="more than no time")
        self.assert_usage("serve", self.www, "--cache", "2G", says="from 0 to 1073741824")
        self.assert_usage("serve", self.www, "--max-conns", "4294967295", says="from 1 to 16777216")
        self.assert_usage("get", "https://a/", "--connect-timeout", "soon", says="soon")
        self.assert_usage("get", "https://a/", "--parallel", "0")
        self.assert_usage("get", "https://a/", "--window", "12q")
        self.assert_usage("get", "https://a/", "--window", "1023", says="from 1024 to 134217728")
        self.assert_usage("get", "https://a/", "--window", "134217729")
        self.assert_usage("get", "https://a/", "--udp-payload", "1100")
        self.assert_usage("get", "https://a/", "--udp-payload", "99999999999999999999")
        self.assert_usage("get", "https://a/", "--connect-to", "here")
        self.assert_usage("serve", "a", "b", says="one folder")
        self.assert_usage("serve", self.www, "--cert", "x", says="go together")
        self.assert_usage("serve", self.www, "--listen", "1.2.3.4:99999", says="--listen")
        self.assert_usage("serve", self.www, "--listen", "localhost", says="--listen")
        for address in (":4433", "4433", "127.0.0.1:0", "0.0.0.0:4433", "[::]:4433", "here"):
            self.assert_usage("serve", self.www, "--preferred-address", address, says=address)
        self.assert_usage("serve", self.www, "--preferred-address", "127.0.0.1:4433",
                          "--preferred-address", "127.0.0.2:4433", says="one IPv4 address")
        self.assert_usage("get", "https://a/", "--migrate", "soon", says="soon")

    def test_urls(self):
        for url in ("http://a/", "a", "https://", "https:///x", "https://a:0/", "https://a:65536/",
                    "https://a:x/", "https://[::1/", "https://[::1]x/", "https://u@a/",
                    "https://a/b c", "https://a/\x01", "https://a/\xff", "ftp://a/", ""):
            with self.subTest(url=url):
                self.assert_usage("get", url, says="not a URL that leat can fetch")


class LocalTrouble(Case):
    def test_a_folder_that_is_not_there(self):
        done = run("serve", os.path.join(self.dir, "none"))
        self.assert_code(done, FILE)
        self.assertIn("No such file or directory", done.err)
        done = run("serve", self.put("plain", b""))
        self.assert_code(done, FILE)
        self.assertIn("Not a directory", done.err)

    def test_a_port_in_use(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind(("127.0.0.1", 0))
            done = run("serve", self.www, "--listen", "127.0.0.1:%d" % sock.getsockname()[1])
        self.assert_code(done, ADDRESS)
        self.assertIn("Address already in use", done.err)

    def test_an_address_of_another_machine(self):
        done = run("serve", self.www, "--listen", "192.0.2.1:0")
        self.assert_code(done, ADDRESS)
        self.assertIn("192.0.2.1:0", done.err)

    def test_certificates_that_cannot_be_used(self):
        cert, key = certificates.make(self.dir, "localhost")
        _, other = certificates.make(self.dir, "localhost", tag="-2")
        junk = self.put("junk.pem", b"-----BEGIN CERTIFICATE-----\nxx\n", self.dir)
        empty = self.put("empty.pem", b"", self.dir)
        for c, k, code in ((cert, other, CERTIFICATE), (junk, key, CERTIFICATE),
                           (cert, junk, CERTIFICATE), (empty, key, CERTIFICATE),
                           (cert + ".none", key, FILE), (cert, key + ".none", FILE)):
            with self.subTest(cert=c, key=k):
                done = run("serve", self.www, "--listen", "127.0.0.1:0", "--cert", c, "--key", k)
                self.assert_code(done, code)
                self.assertIn(c if k == key else k, done.err)  # the one that is at fault
                self.assertNotIn("listening", done.err)

    def test_certificate_files_that_are_empty_or_too_large(self):
        cert, key = certificates.make(self.dir, "localhost")
        empty = self.put("empty.pem", b"", self.dir)
        large = self.put("large.pem", b"x" * 1048577, self.dir)
        for c, k, code, says in ((cert, empty, CERTIFICATE, empty + " is empty"),
                                 (empty, key, CERTIFICATE, empty + " is empty"),
                                 (large, key, FILE, large + " is too large: at most 1 MiB"),
                                 (cert, large, FILE, large + " is too large: at most 1 MiB")):
            for command in (["serve", self.www], ["perf", "server"]):
                with self.subTest(cert=c, key=k, command=command):
                    done = run(*command, "--listen", "127.0.0.1:0", "--cert", c, "--key", k)
                    self.assert_code(done, code)
                    self.assertIn(says, done.err)

    def test_a_certificate_outside_its_time_is_warned_of(self):
        for dates, says in ((("2020-01-01 00:00:00", "2021-01-01 00:00:00"), "has expired"),
                            (("2090-01-01 00:00:00", "2091-01-01 00:00:00"), "is not valid yet")):
            cert, key = certificates.make(self.dir, "localhost", activation=dates[0],
                                          expiration=dates[1])
            server = self.serve("--cert", cert, "--key", key)
            self.assertIn(f"warning: the certificate in {cert} {says}", server.text())
        cert, key = certificates.make(self.dir, "localhost")
        self.assertNotIn("warning", self.serve("--cert", cert, "--key", key).text())

    def test_too_few_files_may_be_open(self):
        import resource
        seen = set()
        for files in range(4, 12):
            done = finish(start_get(
                "https://127.0.0.1:1/x", "-k", "--connect-timeout", "0.1",
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))))
            if done.code in (TIMEOUT, ADDRESS) and "open files" not in done.err:
                break
            self.assertIn("Too many open files", done.err)
            seen.add(done.code)
        self.assertTrue(seen)

    def test_a_ca_file_that_cannot_be_used(self):
        done = get("https://127.0.0.1:1/", "--ca", os.path.join(self.dir, "none"))
        self.assert_code(done, FILE)
        done = get("https://127.0.0.1:1/", "--ca", self.put("ca", b"junk", self.dir))
        self.assert_code(done, CERTIFICATE)

    def test_output_that_cannot_be_written(self):
        self.put("file", os.urandom(100000))
        server = self.serve()
        for protocol in PROTOCOLS:
            for path, says in ((os.path.join(self.got, "none", "file"), "No such file or directory"),
                               (self.got, "Is a directory"),
                               ("/dev/full", "No space left on device"),
                               ("/proc/leat/file", "")):
                with self.subTest(protocol=protocol, path=path):
                    done = get(server.url("/file"), "-k", "--alpn", protocol, "-o", path)
                    self.assert_code(done, FILE)
                    self.assertIn("cannot write " + path, done.err)
                    self.assertIn(says, done.err)
        self.assert_nothing_left()

    def test_a_full_disk_leaves_no_file(self):
        self.put("file", os.urandom(300000))
        server = self.serve()
        # A limit on the size of files is a disk that is full.
        import resource
        process = start_get(
            server.url("/file"), "-k", "-o", self.target(),
            preexec_fn=lambda: (signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
                                resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))))
        done = finish(process)
        self.assert_code(done, FILE)
        self.assertIn("cannot write", done.err)
        self.assert_nothing_left()

    def test_a_name_that_is_too_long_is_told_before_the_file_comes(self):
        self.put("file", b"x" * 1000)
        server = self.serve()
        for length in (251, 255):
            self.assert_code(get(server.url("/file"), "-k", "-o", self.target("n" * length)), OK)
            self.assertEqual(self.read("n" * length), b"x" * 1000)
            os.unlink(self.target("n" * length))
        done = get(server.url("/file"), "-k", "-o", "", cwd=self.got)
        self.assert_code(done, FILE)
        self.assertIn("Is a directory", done.err)
        done = get(server.url("/file"), "-k", "-o", self.target("n" * 256))
        self.assert_code(done, FILE)
        self.assertIn("File name too long", done.err)
        self.assert_nothing_left()

    def test_a_full_disk_for_logs_is_told(self):
        self.put("file", b"x" * 1000)
        server = self.serve("--keylog", "/dev/full")
        done = get(server.url("/file"), "-k", "-o", self.target(), "--keylog", "/dev/full")
        self.assert_code(done, FILE)
        self.assertIn("key log /dev/full is not whole: No space left on device", done.err)
        self.assertEqual(self.read(), b"x" * 1000)  # the file itself is
        told = "warning: the key log cannot be written into /dev/full: No space left on device"
        server.wait_for(told)  # while it runs
        self.assert_code(get(server.url("/file"), "-k", "-o", self.target()), OK)
        self.assertEqual(server.stop(), FILE)
        self.assertEqual(server.text().count(told), 1)
        self.assertIn("key log /dev/full is not whole", server.text())

        import resource
        done = finish(start_get(
            self.serve().url("/file"), "-k", "-o", self.target(), "--qlog", self.dir,
            preexec_fn=lambda: (signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
                                resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)))))
        self.assert_code(done, FILE)
        self.assertIn(f"the qlog files in {self.dir} are not whole: File too large", done.err)

        server = self.serve("--qlog", self.dir, limit=lambda: (
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
            resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))))
        self.assert_code(get(server.url("/file"), "-k", "-o", self.target()), OK)
        server.wait_for(f"warning: the qlog files cannot be written into {self.dir}: File too large")

    def test_a_server_outlives_the_reader_of_its_log(self):
        self.put("file", b"x")
        process = subprocess.Popen([LEAT, "serve", self.www, "--listen", "127.0.0.1:0", "-v"],
                                   stderr=subprocess.PIPE, env=environment())
        self.addCleanup(process.kill)
        port = int(process.stderr.readline().rsplit(b":", 1)[1])
        process.stderr.close()
        for _ in range(2):
            self.assert_code(get(f"https://127.0.0.1:{port}/file", "-k", "-o", self.target()), OK)
        process.terminate()
        self.assertEqual(process.wait(60), OK)

    def test_what_is_for_a_closed_descriptor_goes_nowhere_else(self):
        # The first file that is opened would have its number: the key log.
        self.put("file", b"plain" * 1000)
        server = self.serve()
        keys = os.path.join(self.dir, "keys")
        for closed, path, code in ((1, "/file", FILE), (2, "/none", NOT_FOUND)):
            with self.subTest(closed=closed):
                done = get(server.url(path), "-k", "--keylog", keys,
                           preexec_fn=lambda number=closed: os.close(number))
                self.assert_code(done, code)
                with open(keys) as f:
                    for line in f:
                        self.assertRegex(line, r"^(CLIENT|SERVER|EXPORTER)_[A-Z0-9_]+ [0-9a-f]{64} [0-9a-f]+$")
                if closed == 1:
                    self.assertIn("cannot write standard output: Bad file descriptor", done.err)

    def test_a_pipe_that_does_not_block_is_waited_for(self):
        data = os.urandom(1000000)
        self.put("file", data)
        server = self.serve()
        reader, writer = os.pipe()
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)  # what is written at once is more
        os.set_blocking(writer, False)
        client = subprocess.Popen([LEAT, "get", server.url("/file"), "-k"], stdout=writer,
                                  stderr=subprocess.PIPE, env=environment())
        os.close(writer)
        with open(reader, "rb") as f:
            came = f.read()
        self.assertEqual(client.communicate()[1], b"")
        self.assertEqual(client.returncode, OK)
        self.assertEqual(came, data)

    def test_a_reader_that_goes_away(self):
        self.put("file", os.urandom(3000000))
        server = self.serve()
        process = start_get(server.url("/file"), "-k")
        process.stdout.close()
        err = process.stderr.read().decode()
        process.stderr.close()
        self.assertEqual(process.wait(60), FILE, err)
        self.assertIn("Broken pipe", err)

    def test_a_key_log_that_cannot_be_written(self):
        done = get("https://127.0.0.1:1/", "--keylog", os.path.join(self.dir, "no", "keys"))
        self.assert_code(done, FILE)


class Peers(Case):
    def test_no_such_file(self):
        server = self.serve()
        for protocol in PROTOCOLS:
            done = get(server.url("/none"), "-k", "--alpn", protocol, "-o", self.target())
            self.assert_code(done, NOT_FOUND)
            self.assertIn("no such file", done.err)
            self.assert_nothing_left()

    def test_one_missing_file_does_not_spoil_the_others(self):
        self.put("a", b"A")
        self.put("c", b"C")
        server = self.serve()
        for protocol in PROTOCOLS:
            done = get(*(server.url(p) for p in ("/a", "/b", "/c")), "-k", "--alpn", protocol, "-O",
                       cwd=self.got)
            self.assert_code(done, NOT_FOUND)
            self.assertEqual(sorted(os.listdir(self.got)), ["a", "c"])

    def test_a_peer_that_never_answers(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind(("127.0.0.1", 0))
            done = get("https://127.0.0.1:%d/x" % sock.getsockname()[1], "-k", "-o", self.target(),
                       "--connect-timeout", "0.3")
        self.assert_code(done, TIMEOUT)
        self.assertIn("no answer within 0.3 seconds", done.err)
        self.assert_nothing_left()

    def test_a_port_where_nobody_is(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind(("127.0.0.1", 0))
            port = sock.getsockname()[1]
        done = get(f"https://127.0.0.1:{port}/x", "-k", "--connect-timeout", "0.3")
        self.assertIn(done.code, (TIMEOUT, ADDRESS), done.err)

    def test_a_host_that_does_not_exist(self):
        done = get("https://nowhere.invalid/x")
        self.assert_code(done, ADDRESS)
        self.assertIn("nowhere.invalid", done.err)

    def test_certificates_that_are_not_believed(self):
        server = self.serve()  # self-signed, and unknown to the system
        done = get(server.url("/x", "localhost"), "-4", "-o", self.target())
        self.assert_code(done, CERTIFICATE)
        self.assertIn("certificate", done.err)

        cert, key = certificates.make(self.dir, "example.org")
        server = self.serve("--cert", cert, "--key", key)
        done = get(server.url("/x", "localhost"), "-4", "--ca", cert, "-o", self.target())
        self.assert_code(done, CERTIFICATE)  # another name

        cert, key = certificates.make(self.dir, "localhost", activation="2020-01-01 00:00:00",
                                      expiration="2021-01-01 00:00:00", tag="-old")
        server = self.serve("--cert", cert, "--key", key)
        done = get(server.url("/x", "localhost"), "-4", "--ca", cert, "-o", self.target())
        self.assert_code(done, CERTIFICATE)
        self.assertIn("expired", done.err)
        self.assert_nothing_left()

    def test_no_protocol_in_common(self):
        server = self.serve("--alpn", "hq-interop")
        done = get(server.url("/x"), "-k", "-o", self.target())
        self.assert_code(done, BROKEN)
        self.assertIn("TLS", done.err)
        self.assert_nothing_left()

    def test_a_download_that_breaks_leaves_nothing(self):
        self.put("file", os.urandom(4 << 20))
        server = self.serve()
        for protocol in PROTOCOLS:
            link = self.link(server, 300000)
            done = get(f"https://127.0.0.1:{link.port}/file", "-k", "--alpn", protocol, "-o",
                       self.target(), "--idle-timeout", SILENCE)
            self.assert_code(done, TIMEOUT)
            self.assertIn("silent", done.err)
            self.assert_nothing_left()

    def test_a_connection_that_breaks_has_its_statistics_too(self):
        self.put("file", os.urandom(4 << 20))
        link = self.link(self.serve(), 300000)
        done = get(f"https://127.0.0.1:{link.port}/file", "-k", "-o", self.target(),
                   "--idle-timeout", SILENCE, "--stats")
        self.assert_code(done, TIMEOUT)
        self.assertGreater(done.stat("body_bytes"), 0)
        self.assertEqual(done.err.count("packets_received:"), 1)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind(("127.0.0.1", 0))  # nobody answers
            done = get("https://127.0.0.1:%d/x" % sock.getsockname()[1], "-k", "--connect-timeout",
                       "0.3", "--stats")
        self.assert_code(done, TIMEOUT)
        self.assertEqual(done.stat("packets_received"), 0)

    def test_a_url_too_long_for_a_request_costs_itself_alone(self):
        self.put("file", b"x")
        server = self.serve()
        for protocol in PROTOCOLS:
            done = get(server.url("/" + "a" * 120000), server.url("/file"), "-k", "--alpn", protocol,
                       "-o", self.target("none"), "-o", self.target())
            self.assertNotEqual(done.code, OK)
            self.assertNotIn("closed the connection", done.err)
            self.assertEqual(os.listdir(self.got), ["file"])

    def test_a_server_that_is_killed_and_comes_back_without_memory(self):
        self.put("file", os.urandom(4 << 20))
        server = self.serve()
        link = self.link(server, 300000)
        client = start_get(f"https://127.0.0.1:{link.port}/file", "-k", "-o", self.target(),
                           "--idle-timeout", SILENCE)
        self.assertTrue(link.stopped.wait(60))
        server.stop(signal.SIGKILL)
        done = finish(client)
        self.assertIn(done.code, (TIMEOUT, BROKEN), done.err)
        self.assert_nothing_left()

    def test_a_file_that_shrinks_while_it_is_sent(self):
        path = self.put("file", os.urandom(8 << 20))
        server = self.serve("--send-buffer", "64k")
        for protocol in PROTOCOLS:
            self.put("file", os.urandom(8 << 20))
            link = self.link(server, 300000)
            client = start_get(f"https://127.0.0.1:{link.port}/file", "-k", "--alpn", protocol, "-o",
                               self.target())
            self.assertTrue(link.stopped.wait(60))
            os.truncate(path, 1 << 20)
            link.go_on()
            done = finish(client)
            self.assert_code(done, BROKEN)
            self.assertIn("reset", done.err)
            self.assert_nothing_left()
        self.assertEqual(server.stop(), OK)

    def test_two_downloads_do_not_mix_in_one_file(self):
        data = os.urandom(4 << 20)
        self.put("file", data)
        server = self.serve()
        link = self.link(server, 300000)
        first = start_get(f"https://127.0.0.1:{link.port}/file", "-k", "-o", self.target())
        self.assertTrue(link.stopped.wait(60))
        # Each writes a file of its own until it is whole.
        self.assert_code(get(server.url("/file"), "-k", "-o", self.target()), OK)
        self.assertEqual(self.read(), data)
        link.go_on()
        self.assert_code(finish(first), OK)
        self.assertEqual(self.read(), data)
        self.assertEqual(os.listdir(self.got), ["file"])

    def test_files_of_others_are_left_alone(self):
        self.put("file", b"short")
        self.put("file.part", b"the server's other file")
        self.put("file.part", b"what the user has", self.got)
        server = self.serve()
        self.assert_code(get(server.url("/file"), "-k", "-o", self.target()), OK)
        self.assertEqual(self.read(), b"short")
        with open(os.path.join(self.got, "file.part"), "rb") as kept:
            self.assertEqual(kept.read(), b"what the user has")
        self.assert_code(get(server.url("/file"), server.url("/file.part"), "-k", "-O",
                             "--output-dir", self.got), OK)
        self.assertEqual(self.read(), b"short")
        with open(os.path.join(self.got, "file.part"), "rb") as got:
            self.assertEqual(got.read(), b"the server's other file")

    def test_signals_that_keep_coming_end_it_in_order(self):
        self.put("file", os.urandom(2 << 20))
        server = self.serve()
        link = self.link(server, 300000)
        client = start_get(f"https://127.0.0.1:{link.port}/file", "-k", "-o", self.target())
        self.assertTrue(link.stopped.wait(60))
        for process, code in ((client, INTERRUPTED), (server.process, OK)):
            ended = None
            while ended is None:  # each leaves it the time to go on
                process.send_signal(signal.SIGINT)
                try:
                    ended = process.wait(0.001)
                except subprocess.TimeoutExpired:
                    pass
            self.assertEqual(ended, code)
        client.communicate()
        self.assert_nothing_left()

    def test_an_interrupted_download_leaves_nothing(self):
        self.put("file", os.urandom(4 << 20))
        server = self.serve()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            link = self.link(server, 300000)
            client = start_get(f"https://127.0.0.1:{link.port}/file", "-k", "-o", self.target(),
                               preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))
            self.assertTrue(link.stopped.wait(60))
            client.send_signal(number)
            done = finish(client)
            self.assert_code(done, INTERRUPTED)
            self.assertEqual(done.err, "leat: interrupted\n")
            self.assert_nothing_left()

    def test_nohup_is_respected(self):
        data = os.urandom(4 << 20)
        self.put("file", data)
        link = self.link(self.serve(), 300000)
        client = start_get(f"https://127.0.0.1:{link.port}/file", "-k", "-o", self.target(),
                           preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.assertTrue(link.stopped.wait(60))
        client.send_signal(signal.SIGHUP)
        link.go_on()
        self.assert_code(finish(client), OK)
        self.assertEqual(self.read(), data)


class Escapes(Case):
    def setUp(self):
        super().setUp()
        self.put("secret", b"secret", self.dir)
        self.put("inside", b"inside")
        self.put("folder/index.html", b"index")
        os.mkdir(os.path.join(self.www, "bare"))
        for name, to in (("out-file", "../secret"), ("out-folder", ".."), ("absolute", "/etc/passwd"),
                         ("loop", "loop"), ("in-file", "inside"), ("in-folder", "folder"),
                         ("up-and-in", "folder/../inside")):
            os.symlink(to, os.path.join(self.www, name))
        os.mkfifo(os.path.join(self.www, "fifo"))

    def test_what_lies_outside_is_not_served(self):
        server = self.serve()
        for path in ("/../secret", "/..%2fsecret", "/%2e%2e/secret", "/%2E%2E%2Fsecret",
                     "/folder/../../secret", "/folder/..%2f..%2fsecret", "/./../secret",
                     "/out-file", "/out-folder/secret", "/out-folder", "/absolute", "/loop",
                     "//etc/passwd", "/%2fetc%2fpasswd", "/%252e%252e/secret", "/inside%00",
                     "/%00", "/inside%", "/inside%2", "/inside%zz", "/bare", "/bare/", "/fifo",
                     "/inside/", "/inside/x", "/" + "a" * 300, "/" + "a/" * 2500):
            for protocol in PROTOCOLS:
                with self.subTest(path=path[:40], protocol=protocol):
                    done = get(server.url(path), "-k", "--alpn", protocol, "-o", self.target())
                    self.assertIn(done.code, (3, 4), done.err)
                    self.assertRegex(done.err, r"\b(403|404)\b")
                    self.assert_nothing_left()

    links = {"/in-file": b"inside", "/in-folder/": b"index", "/up-and-in": b"inside"}

    def test_what_lies_inside_is(self):
        server = self.serve()
        for path, data in (("/inside", b"inside"), ("/%69nside", b"inside"), ("/inside?x=..", b"inside"),
                           ("/./inside", b"inside"), ("//inside", b"inside"), ("/folder", b"index"),
                           ("/folder/", b"index"), *self.links.items()):
            with self.subTest(path=path):
                done = get(server.url(path), "-k", "-o", self.target())
                if data is None:
                    self.assertIn(done.code, (STATUS, NOT_FOUND), done.err)
                    continue
                self.assert_code(done, OK)
                self.assertEqual(self.read(), data)

    def swapped(self, path, status):
        """Asks for it until the server tells this status. What comes before is what there was: never a secret."""
        server = self.serve()
        self.assert_code(get(server.url(path), "-k", "-o", self.target()), OK)
        yield
        deadline = time.monotonic() + PATIENCE
        while (done := get(server.url(path), "-k", "-o", self.target())).code == OK:
            self.assertEqual(self.read(), b"inside")
            self.assertLess(time.monotonic(), deadline)
        self.assertRegex(done.err, rf"\b{status}\b")

    def test_what_is_kept_in_memory_is_no_way_out(self):
        os.mkdir(os.path.join(self.www, "turned"))
        self.put("turned/secret", b"inside")
        for _ in self.swapped("/turned/secret", "(403|404)"):
            shutil.rmtree(os.path.join(self.www, "turned"))
            os.symlink("..", os.path.join(self.www, "turned"))

    def test_what_is_kept_in_memory_goes_with_its_file(self):
        self.put("goes", b"inside")
        for _ in self.swapped("/goes", "404"):
            os.unlink(os.path.join(self.www, "goes"))

    def test_what_is_kept_in_memory_changes_with_its_file(self):
        server = self.serve()
        self.put("changes", b"inside")
        deadline = time.monotonic() + PATIENCE
        for data in (b"inside", b"another", b"x" * 100000, b""):
            self.put("changes", data)
            while True:
                self.assert_code(get(server.url("/changes"), "-k", "-o", self.target()), OK)
                if self.read() == data:
                    break
                self.assertLess(time.monotonic(), deadline)

    def test_what_may_not_be_read(self):
        os.chmod(self.put("shut", b"x"), 0)
        server = self.serve(limit=restrictions.read_as_anybody if os.geteuid() == 0 else None)
        done = get(server.url("/shut"), "-k", "-o", self.target())
        self.assert_code(done, STATUS)


class EscapesByWalking(Escapes):
    """The same where the kernel has no openat2(): no link is followed, not even one that stays inside."""

    links = dict.fromkeys(Escapes.links)

    def serve(self, *options, limit=None, **kwargs):
        return super().serve(*options, limit=lambda: (restrictions.without_openat2(), limit and limit()),
                             **kwargs)


if __name__ == "__main__":
    main()

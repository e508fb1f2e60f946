"""Between the first megabyte of a transfer and the last, neither process makes a heap call, and the
context's high-water mark stays where it is.

Counted by liballoccount.so, preloaded into both; --stats prints what they have counted.

SPDX-License-Identifier: MIT
"""
import os
import sys

COUNTER = os.path.abspath(sys.argv.pop(2))

from harness import OK, Case, environment, get, main  # noqa: E402

SIZE = 24 << 20


class SteadyState(Case):
    def transfer(self, protocol, server_options=(), options=(), drop_each=None):
        data = os.urandom(SIZE)
        self.put("file", data)
        counted = environment(LD_PRELOAD=COUNTER)
        server = self.serve("--stats", "--once", *server_options, env=counted)
        port = self.link(server, drop_each=drop_each).port if drop_each else server.port
        done = get(f"https://127.0.0.1:{port}/file", "-k", "--alpn", protocol, "-o", self.target(),
                   "--stats", *options, env=counted)
        self.assert_code(done, OK)
        self.assertEqual(self.read(), data)
        self.assertEqual(server.process.wait(60), 0)
        server.reader.join(60)
        for text in (done.err, server.text()):
            self.assertRegex(text, r"(?m)^ *heap_calls: *[1-9]")  # it does count
            self.assertRegex(text, r"(?m)^ *steady_heap_calls: *0\b")
            self.assertRegex(text, r"(?m)^ *steady_mem_growth: *0\b")
        return done

    def test_h3(self):
        self.transfer("h3")

    def test_hq_interop(self):
        self.transfer("hq-interop")

    def test_through_key_updates(self):
        done = self.transfer("h3", ["--key-update", "2000"])
        self.assertGreater(done.stat("key_updates"), 3)

    def test_through_loss(self):
        self.transfer("h3", drop_each=200)


if __name__ == "__main__":
    main()

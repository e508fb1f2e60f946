"""What happens when the system gives no more memory: some are served, and the others are told.

SPDX-License-Identifier: MIT
"""
import os
import re
import resource

from harness import MEMORY, OK, Case, finish, get, main, start_get

CLIENTS = 12
SIZE = 3000000
ROOM = 6000  # KiB beyond what a server has that only listens: less than the clients want


def limit(kib):
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (kib * 1024, kib * 1024))


def address_space(process):
    with open(f"/proc/{process.pid}/status") as f:
        return int(re.search(r"VmPeak:\s+(\d+) kB", f.read()).group(1))


class Memory(Case):
    def test_a_server_without_memory_for_all_serves_some(self):
        """Without room for a received acknowledgement nothing that was sent could be freed."""
        data = os.urandom(SIZE)
        self.put("file", data)
        server = self.serve()
        size = address_space(server.process)
        server.stop()
        server = self.serve(limit=limit(size + ROOM))
        clients = [start_get(server.url("/file"), "-k", "-o", self.target(str(i)), "--idle-timeout",
                             "10") for i in range(CLIENTS)]
        done = [finish(client) for client in clients]
        whole = [i for i, result in enumerate(done) if result.code == OK]
        self.assertGreaterEqual(len(whole), 1, "\n".join(result.err for result in done))
        self.assertEqual(sorted(int(name) for name in os.listdir(self.got)), whole)
        for i in whole:
            self.assertEqual(self.read(str(i)), data)
        # And when they are gone it serves again.
        self.assert_code(get(server.url("/file"), "-k", "-o", self.target()), OK)

    def test_a_client_without_memory_says_so(self):
        for kib in range(10000, 200000, 1000):
            done = finish(start_get("https://127.0.0.1:1/x", "-k", "--connect-timeout", "0.1",
                                    preexec_fn=limit(kib)))
            if done.code == MEMORY:
                self.assertIn("out of memory", done.err)
                return
        self.fail("never out of memory")


if __name__ == "__main__":
    main()

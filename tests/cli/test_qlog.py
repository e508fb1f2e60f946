"""qlog files: everything in them is as the draft says (qlog_schema.py), and they tell what happened.

SPDX-License-Identifier: MIT
"""
import copy
import os
import unittest

import qlog_schema
from harness import OK, Case, Link, environment, get, main
from test_migration import preferred


class Qlog(Case):
    def setUp(self):
        super().setUp()
        self.qlogs = os.path.join(self.dir, "qlogs")
        os.mkdir(self.qlogs)
        self.env = environment(QLOGDIR=self.qlogs)
        self.put("file", os.urandom(300000))

    def fetch(self, server, *options):
        self.assert_code(get(server.url("/file"), "-k", "-o", self.target(), *options, env=self.env), OK)
        self.assertEqual(os.path.getsize(self.target()), 300000)

    def events(self, server):
        """Of both ends, checked: {"client": [events of a connection, ...], "server": ..., "endpoint": ...}"""
        self.assertEqual(server.stop(), 0)
        sides = {"client": [], "server": [], "endpoint": []}
        for name in sorted(os.listdir(self.qlogs),
                           key=lambda name: os.stat(os.path.join(self.qlogs, name)).st_mtime_ns):
            _header, events = qlog_schema.check_file(os.path.join(self.qlogs, name))
            side = "endpoint" if name.startswith("endpoint") else name.rsplit("_", 1)[1].split(".")[0]
            sides[side].append(events)
        for connection in sides["client"] + sides["server"]:
            parameters = self.data(connection, "parameters_set")
            self.assertEqual(sorted(p.get("initiator", "") for p in parameters), ["", "local", "remote"])
            self.assertEqual(connection[0]["name"], "quic:connection_started")
            self.assertEqual(connection[-1]["name"], "quic:connection_closed")
        return sides

    def data(self, events, name):
        return [event["data"] for event in events if event["name"] == "quic:" + name]

    def packets(self, events, direction, kind):
        return [packet for packet in self.data(events, "packet_" + direction)
                if packet["header"]["packet_type"] == kind]

    def frames(self, events, direction, kind):
        return [frame for packet in self.data(events, "packet_" + direction)
                for frame in packet.get("frames", []) if frame["frame_type"] == kind]

    def test_a_transfer(self):
        server = self.serve(env=self.env)
        self.fetch(server)
        sides = self.events(server)
        self.assertEqual([len(sides[side]) for side in ("client", "server", "endpoint")], [1, 1, 0])
        for events in sides["client"] + sides["server"]:
            header = self.packets(events, "sent", "1RTT")[0]["header"]
            self.assertEqual(header["key_phase"], 0)
            self.assertEqual(len(header["dcid"]), 16)
            self.assertTrue({"scid", "dcid", "version"} <=
                            self.packets(events, "sent", "handshake")[0]["header"].keys())
            self.assertEqual(self.packets(events, "received", "1RTT")[0]["ecn"], "ECT(0)")
            self.assertTrue(any(ack["ect0"] for ack in self.frames(events, "received", "ack")))
            [state] = [s for s in self.data(events, "connection_state_updated") if "resumed" in s]
            self.assertEqual((state["resumed"], state["early_data"]), (False, "none"))
            self.assertEqual(self.data(events, "alpn_information"), [{"chosen_alpn": {"string_value": "h3"}}])
        [client], [of_server] = sides["client"], sides["server"]
        self.assertEqual({ack["error_code"] for ack in self.frames(client, "sent", "connection_close")}, {0x100})
        ours, theirs = self.data(client, "parameters_set")[:2]
        self.assertEqual(theirs | {"initiator": "local"},
                         [p for p in self.data(of_server, "parameters_set")
                          if p.get("initiator") == "local"][0])
        self.assertEqual(ours["version_information"]["chosen_version"], "00000001")

    def test_retry_and_key_updates(self):
        server = self.serve("--retry", "--key-update", "40", "--window", "16k", env=self.env)
        self.fetch(server, "--window", "16k")
        sides = self.events(server)
        [client], [of_server], [endpoint] = sides["client"], sides["server"], sides["endpoint"]
        [sent] = self.data(endpoint, "packet_sent")
        [received] = self.packets(client, "received", "retry")
        self.assertEqual(sent, received)
        self.assertEqual(sent["header"]["token"]["type"], "retry")
        for packets in (self.packets(client, "sent", "initial")[1:],
                        self.packets(of_server, "received", "initial")):
            self.assertTrue(packets)
            for packet in packets:
                self.assertEqual(packet["header"]["token"], sent["header"]["token"])
        for events in (client, of_server):
            for who in ("client", "server"):
                phases = [key["key_phase"] for key in self.data(events, "key_updated")
                          if key["key_type"] == who + "_1rtt_secret"]
                self.assertEqual(phases, list(range(len(phases))))
                self.assertGreaterEqual(len(phases), 2)
                gone = [key["key_phase"] for key in self.data(events, "key_discarded")
                        if key["key_type"] == who + "_1rtt_secret"]
                self.assertEqual(gone, list(range(len(gone))))
                self.assertGreaterEqual(len(gone), len(phases) - 2)
            self.assertEqual(max(p["header"]["key_phase"] for p in self.packets(events, "sent", "1RTT")), phases[-1])

    def test_versions(self):
        server = self.serve("--versions", "v2", env=self.env)
        self.fetch(server, "--versions", "v1,v2")
        sides = self.events(server)
        [client], [endpoint] = sides["client"], sides["endpoint"]
        [received] = self.packets(client, "received", "version_negotiation")
        self.assertEqual(self.data(endpoint, "packet_sent"), [received])
        self.assertIn("6b3343cf", received["supported_versions"])
        self.assertEqual([v.get("chosen_version") for v in self.data(client, "version_information")],
                         ["00000001", "6b3343cf", "6b3343cf"])
        self.assertEqual(self.data(endpoint, "version_information"),
                         [{"server_versions": ["6b3343cf"], "client_versions": ["00000001"]}])

    def test_resumption(self):
        session = os.path.join(self.dir, "session")
        server = self.serve("--early-data", env=self.env)
        for _ in range(2):
            self.fetch(server, "--session-file", session)
        sides = self.events(server)
        for side in ("client", "server"):
            states = [s for events in sides[side] for s in self.data(events, "connection_state_updated")
                      if "resumed" in s]
            self.assertCountEqual([(s["resumed"], s["early_data"]) for s in states],
                                  [(False, "none"), (True, "accepted")])
        restored = [r for events in sides["client"] for r in self.data(events, "parameters_restored")]
        self.assertEqual(len(restored), 1)
        early = [p for events in sides["server"] for p in self.packets(events, "received", "0RTT")]
        self.assertTrue(early)

    def test_a_token_spares_the_retry(self):
        session = os.path.join(self.dir, "session")
        server = self.serve("--retry", env=self.env)
        for _ in range(3):
            self.fetch(server, "--session-file", session)
        connections = self.events(server)["client"]
        self.assertEqual([len(self.packets(events, "received", "retry")) for events in connections], [1, 0, 0])

    def test_migration(self):
        server = self.serve("--preferred-address", preferred(), env=self.env)
        self.put("file", os.urandom(300000))
        self.fetch(server, "--window", "16k")
        sides = self.events(server)
        for events in sides["client"] + sides["server"]:
            self.assertEqual([p["tuple_id"] for p in self.data(events, "tuple_assigned")][0], "1")
            states = [m["new"] for m in self.data(events, "migration_state_updated") if m["tuple_id"] == "1"]
            self.assertEqual(states, ["probing_started", "probing_successful", "migration_started",
                                      "migration_complete"])
            self.assertEqual({"local", "remote"},
                             {c["initiator"] for c in self.data(events, "connection_id_updated")})
            self.assertIn("1", {e.get("tuple") for e in events if e["name"] == "quic:packet_sent"})

    def test_loss_and_a_black_hole_for_large_datagrams(self):
        large = ["--udp-payload", "4000", "--no-offload"]
        server = self.serve(*large, env=self.env)
        link = Link(server.port, drop_each=40, hole=(500000, 1300))
        try:
            self.put("file", os.urandom(2 << 20))
            self.assert_code(get(server.url("/file"), "-k", "-o", self.target(), "--connect-to",
                                 f"127.0.0.1:{link.port}", *large, env=self.env), OK)
        finally:
            link.close()
        [events] = self.events(server)["server"]
        sizes = [(m["old"], m["new"]) for m in self.data(events, "mtu_updated")]
        self.assertEqual(sizes[:2], [(1200, 4000), (4000, 1200)])
        self.assertTrue(all(1200 <= new <= 1300 for _old, new in sizes[1:]))
        lost = [p["header"]["packet_number"] for p in self.data(events, "packet_lost")]
        sent = {p["header"]["packet_number"] for p in self.packets(events, "sent", "1RTT")}
        self.assertGreater(len(lost), 10)
        self.assertLessEqual(set(lost), sent)
        self.assertIn("recovery", [s["new"] for s in self.data(events, "congestion_state_updated")])

    def test_the_schema_finds_what_is_wrong(self):
        """Each event, with a field that is not the draft's, with one of a wrong type, with another name."""
        server = self.serve("--retry", env=self.env)
        self.fetch(server)
        sides = self.events(server)
        seen = set()
        for event in [e for side in sides.values() for events in side for e in events]:
            seen.add(event["name"])
            wrong = copy.deepcopy(event)
            wrong["data"]["nonsense"] = 1
            self.assertRaises(ValueError, qlog_schema.check_event, wrong)
            for field in ("header", "new", "initiator", "frames"):
                if field in event["data"]:
                    wrong = copy.deepcopy(event)
                    wrong["data"][field] = {"nonsense": 7}
                    self.assertRaises(ValueError, qlog_schema.check_event, wrong)
            wrong = dict(event, name="transport:" + event["name"].split(":")[1])
            self.assertRaises(ValueError, qlog_schema.check_event, wrong)
        self.assertGreater(len(seen), 12)


if __name__ == "__main__":
    main()

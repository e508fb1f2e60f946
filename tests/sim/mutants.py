#!/usr/bin/env python3
"""Puts small faults into a copy of the library, one after the other, and says which of them the simulator finds.

    tests/sim/mutants.py --work DIR [--seeds N] [--first N] [--check N] [NAME...]

DIR/tree is a copy of the tree, DIR/build its release build (tests/mutants/tree.py). Each fault is one text in one
file that becomes another: a frame not sent again, a byte not counted. A fault is found when one of the seeds fails. Exits 1
when a fault was not found that is not marked as such below, or was found though it is: the list says what the
simulator can see, and what not.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../mutants"))
from tree import Tree

ENOUGH = 3  # seeds that fail
SECONDS = 120

# name, file, what stands there, what stands there instead, and for what no seed finds: why not.
MUTANTS = [
    ("credit_byte_lost", "src/stream/flow.h", "    flow->consumed += n;",
     "    flow->consumed += n > 1 ? n - 1 : n;", None),
    ("reset_keeps_credit", "src/stream/recv.c",
     "    give_up(recv, conn);\n    recv->state = recv->stopped ? LEAT_RECV_RESET_READ : LEAT_RECV_RESET_RECVD;",
     "    (void)conn;\n    recv->state = recv->stopped ? LEAT_RECV_RESET_READ : LEAT_RECV_RESET_RECVD;", None),
    ("connection_credit_not_asked", "src/stream/send.c",
     "            len = least(len, leat_flow_out_left(conn));",
     "            len = least(len, leat_flow_out_left(conn) + 1);", None),
    ("fin_not_sent_again", "src/stream/send.c",
     "    if (fin && send->fin && !send->fin_acked) {\n        send->fin_lost = true;",
     "    if (fin && send->fin && !send->fin_acked) {\n        send->fin_lost = false;", None),
    ("last_byte_not_sent_again", "src/stream/send.c",
     "    to = to < send->end ? to : send->end; /* what RESET_STREAM_AT left out */",
     "    to = to < send->end ? to : send->end - 1;", None),
    ("reset_at_not_sent_again", "src/stream/send.c",
     "    if (is_newest_reset(send, reliable) && !send->reset_acked) {\n        send->reset_sent = false;",
     "    if (is_newest_reset(send, reliable) && !send->reset_acked) {\n        send->reset_sent = true;", None),
    ("reset_code_forgotten", "src/stream/recv.c",
     "    recv->final_size = final_size;\n    recv->reset_code = reset_code;\n    end_by_reset(recv, conn, news);",
     "    recv->final_size = final_size;\n    end_by_reset(recv, conn, news);", None),
    ("control_not_sent_again", "src/conn/sentframes.c",
     "        leat_streams_control_lost(&conn->streams, frame->owner, (leat_control)frame->flags,",
     "        leat_streams_control_acked(&conn->streams, frame->owner, (leat_control)frame->flags,", None),
    ("crypto_not_sent_again", "src/conn/sentframes.c",
     "        leat_stream_send_on_lost(&pn->crypto->send, frame->value, frame->len, false);",
     "        (void)frame;", None),
    ("handshake_done_not_sent_again", "src/conn/sentframes.c",
     "    conn->pending |= LEAT_CONN_SEND_HANDSHAKE_DONE;", "    (void)conn;", None),
    ("new_token_not_sent_again", "src/conn/sentframes.c",
     "        conn->pending |= LEAT_CONN_SEND_NEW_TOKEN;", "        conn->pending |= 0;", None),
    ("new_id_not_sent_again", "src/conn/cid.c",
     "        entry->state = LEAT_CID_PENDING;\n        cids->pending++;\n    }\n}\n\nuint64_t",
     "        (void)0;\n    }\n}\n\nuint64_t", None),
    ("retire_id_not_sent_again", "src/conn/sentframes.c",
     "    leat_remote_cids_retire_lost(&conn->remote_cids, frame->value);",
     "    leat_remote_cids_retire_acked(&conn->remote_cids, frame->value);", None),
    ("ack_frequency_not_sent_again", "src/conn/sentframes.c",
     "    conn->ackfreq.pending |= leat_ackfreq_is_newest(&conn->ackfreq, frame->value);",
     "    (void)conn, (void)frame;", "too seldom for 300 seeds (3,000 find it): unit/conn/lost has it"),
    ("lost_probe_of_the_size_waited_for", "src/conn/sentframes.c",
     "        leat_mtu_probe_lost(&conn->mtu);", "        (void)conn;", None),
    ("no_black_hole", "src/conn/mtu.c", "    mtu->large = false;\n    if (mtu->size <= LEAT_MTU_BASE) {",
     "    mtu->large = false;\n    if (mtu->size > 0) {", None),
    ("black_hole_by_losses_not_seen", "src/conn/mtu.c",
     "    return ++mtu->black >= LEAT_MTU_BLACK_LOSSES && black_hole(mtu);",
     "    return ++mtu->black >= 255 && black_hole(mtu);", "the timeouts see it, too"),
    ("black_hole_by_timeouts_not_seen", "src/conn/mtu.c",
     "    return mtu->large && count >= LEAT_MTU_BLACK_PTOS && black_hole(mtu);",
     "    return mtu->large && count >= 99 && black_hole(mtu);", "the losses see it, too"),
    ("amplification_five", "src/conn/path.h", "#define LEAT_PATH_AMPLIFICATION 3",
     "#define LEAT_PATH_AMPLIFICATION 5", None),
    ("challenge_not_answered", "src/conn/path.c",
     "    memcpy(path->response[path->responses++], data, LEAT_PATH_DATA);\n}",
     "    memcpy(path->response[path->responses], data, LEAT_PATH_DATA);\n}", None),
    ("challenge_not_repeated", "src/conn/path.c",
     "        path->challenges < LEAT_PATH_CHALLENGES ? leat_time_add(now, pto) : LEAT_TIME_NEVER;",
     "        path->challenges == 0 ? leat_time_add(now, pto) : LEAT_TIME_NEVER;",
     "the path counts as lost, and all goes on by the old one"),
    ("recovery_kept_on_a_new_path", "src/conn/migrate.c", "        reset_recovery(conn, leat_conn_now(conn));",
     "        if (conn->count.migrations > 100) {\n            reset_recovery(conn, 0);\n        }",
     "slower or ruder, and nothing is wrong: unit/conn/migrate has it"),
    ("reset_token_of_another_id", "src/endpoint/stateless.c", "leat_reset_token(ep->host.reset_key, packet + 1,",
     "leat_reset_token(ep->host.reset_key, packet + 2,", None),
    ("retired_id_keeps_its_route", "src/conn/conn.c", "    conn->host->ops->route_remove(conn->host, conn, cid);",
     "    if (!leat_conn_is_open(conn)) {\n        conn->host->ops->route_remove(conn->host, conn, cid);\n    }",
     None),
    ("old_keys_dropped_at_once", "src/conn/rekey.c",
     "    rekey->drop_prev_at = leat_time_add(now, drop_after);",
     "    rekey->drop_prev_at = leat_time_add(now, drop_after / 1000);",
     "what was overtaken is sent again: unit/conn/parts has it"),
    ("key_phase_not_followed", "src/conn/rekey.c", "    if (rekey->tx_phase < rekey->rx_phase) {", "    if (rekey->tx_phase + 1 < rekey->rx_phase) {", None),
    ("duplicates_not_known", "src/recovery/acks.c", "    if (pn < acks->floor) {\n        return true;",
     "    if (pn < acks->floor) {\n        return false;", None),
    ("ect_not_counted", "src/recovery/acks.c", "        acks->ect0++;", "        acks->ect0 += 0;", None),
    ("acks_late", "src/recovery/acks.c",
     "        acks->deadline = leat_time_add(received_at, acks->max_delay);",
     "        acks->deadline = leat_time_add(received_at, 4 * acks->max_delay);", None),
    ("no_back_off", "src/recovery/loss.c",
     "    period = leat_time_backoff(leat_loss_pto(loss, space), loss->pto_count);",
     "    period = leat_time_backoff(leat_loss_pto(loss, space), 0);", None),
    ("back_off_not_ended", "src/recovery/loss.c", "    if (loss->peer_validated) {\n        loss->pto_count = 0;",
     "    if (loss->peer_validated && false) {\n        loss->pto_count = 0;", None),
    ("one_probe_in_the_wrong_space", "src/conn/ack.c", "    pn->probes = (uint8_t)timeout->probes;",
     "    pn->probes = 0;", None),
    ("idle_time_not_begun_anew", "src/conn/recv.c", "    conn->last_received = leat_conn_now(conn);",
     "    conn->last_received += 0;", "no end sends nothing but ACKs for as long as its idle time"),
    ("no_keep_alive", "src/conn/timers.c", "    if (now >= keep_alive_at(conn)) {",
     "    if (now >= keep_alive_at(conn) && conn->settings->keep_alive == 1) {", None),
    ("close_said_once", "src/conn/close.c", "    conn->closing.answer_at = 1;",
     "    conn->closing.answer_at = UINT64_MAX;", "silence after a close explains itself"),
    ("streams_not_given_back", "src/stream/table.c",
     "        streams->control |= bidi ? LEAT_CONTROL_MAX_STREAMS_BIDI : LEAT_CONTROL_MAX_STREAMS_UNI;",
     "        streams->control |= bidi ? LEAT_CONTROL_MAX_STREAMS_BIDI : 0;", None),
    ("datagrams_of_the_queue_untold", "src/conn/datagram.c", "    if (first->notify) {\n        leat_datagrams_note",
     "    if (first->notify && outcome == LEAT_DATAGRAM_DROPPED) {\n        leat_datagrams_note", None),
    ("lost_datagram_acked", "src/conn/datagram.c", "acked ? LEAT_DATAGRAM_ACKED : LEAT_DATAGRAM_LOST);",
     "LEAT_DATAGRAM_ACKED);", None),
    ("early_data_not_sent_again", "src/conn/early.c", "    leat_streams_restart(&conn->streams, &limits);",
     "    (void)limits;", None),
    ("token_of_any_address", "src/endpoint/addrtoken.c",
     "    leat_writer_bytes(&w, remote->ip, remote->family == 4 ? 4 : 16);", "    leat_writer_u8(&w, 0);",
     "nobody here steals tokens: unit/endpoint/endpoint does"),
]


def try_one(mutant, tree, options):
    """What became of it: found (how many seeds, what the first said), or None; a text: it could not be tried."""
    _, path, before, after, _ = mutant
    with tree.fault(path, before, after) as why:
        why = why or tree.make("leat-sim")
        if why:
            return why
        return watch([os.path.join(tree.build, "tests/sim/leat-sim"), "--seed", str(options.first),
                      "--count", str(options.seeds), "--check", str(options.check)])


def watch(command):
    """Runs the seeds until a few have failed, or none has in its time."""
    said, failed, end = [], 0, time.monotonic() + SECONDS
    with tempfile.TemporaryFile("w+", encoding="utf-8") as log:
        sim = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log, start_new_session=True)
        while sim.poll() is None and failed < ENOUGH and time.monotonic() < end:
            time.sleep(0.2)
            log.seek(0)
            said = log.read().splitlines()
            failed = sum(" FAILED; " in line for line in said)
        if sim.poll() is None:
            os.killpg(sim.pid, signal.SIGKILL)
            sim.wait()
        log.seek(0)
        said = log.read().splitlines()
    failed = sum(" FAILED; " in line for line in said)
    first = [line for line in said if re.match(r"seed \d+, |.*: assertion|.*ASSERT", line)] + said + ["no end"]
    return (failed, first[0]) if failed or sim.returncode else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", required=True)
    parser.add_argument("--source", default=os.path.join(os.path.dirname(__file__), "../.."))
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--check", type=int, default=4)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    tree = Tree(options.work, options.source, ["-DCMAKE_BUILD_TYPE=Release", "-DLEAT_LTO=OFF"])
    wrong = found = tried = 0
    for mutant in MUTANTS:
        if options.names and mutant[0] not in options.names:
            continue
        became = try_one(mutant, tree, options)
        tried += 1
        if isinstance(became, str):
            print("%-36s NOT TRIED: %s" % (mutant[0], became), flush=True)
            wrong += 1
        elif became is None:
            print("%-36s not found%s" % (mutant[0], ": " + mutant[4] if mutant[4] else ""), flush=True)
            wrong += not mutant[4]
        else:
            print("%-36s found: %s" % (mutant[0], became[1][:140]), flush=True)
            found += 1
            wrong += bool(mutant[4])
    print("%d of %d found by %d seeds" % (found, tried, options.seeds))
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())

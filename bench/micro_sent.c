/* micro_sent: what recovery costs a packet: recording it with its frame when it is sent, and
 * acknowledging it, with the RTT and the loss detector; and the same with the controller and the
 * pacer, as the connection does.
 *
 *   micro_sent [millions of packets]
 *
 * A window of packets stays in flight. An ACK frame covers n packets and, as peers do, repeats
 * `old` ranges below. The figure is CPU time, the best of ten rounds: the machine may be busy with
 * other things.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cc/pacer.h"
#include "recovery/loss.h"

enum { WINDOW = 256, SIZE = 1252, ROUNDS = 10 };

static uint64_t acked_frames;
static uint64_t lost_frames;

static void on_acked(void *ctx, const leat_sent_frame *frame)
{
    (void)ctx;
    acked_frames += frame->len;
}

static void on_lost(void *ctx, const leat_sent_frame *frame)
{
    (void)ctx;
    lost_frames += frame->len;
}

static const leat_frame_ops ops[] = {{on_acked, on_lost}};

static double seconds(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

typedef struct path {
    leat_flight flight;
    leat_sent sent;
    leat_loss loss;
    leat_cc cc;
    leat_pacer pacer;
    leat_time now;
    bool with_cc;
} path;

static void send_burst(path *p, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (leat_sent_begin(&p->sent, false) != LEAT_OK ||
            leat_sent_add(&p->sent, 0, p, i, 1, 0) != LEAT_OK) {
            abort();
        }
        leat_sent_commit(&p->sent, p->now, SIZE, LEAT_SENT_ELICITING | LEAT_SENT_IN_FLIGHT, 0);
        if (p->with_cc) {
            leat_cc_on_sent(&p->cc, &p->flight, p->now, SIZE);
        }
    }
    leat_loss_on_sent(&p->loss, p->now, true);
    leat_pacer_on_sent(&p->pacer, p->now, (uint64_t)n * SIZE);
}

/* The ACK of the n numbers from `from` on, and of all below in ranges of 50 with a hole between
 * each. */
static void ack(path *p, uint64_t from, uint32_t n, uint32_t old)
{
    leat_sent_acked acked;
    leat_sent_lost lost;
    uint64_t to = from + n, low = from > 50 ? from - 50 : 0;

    if (leat_sent_ack_start(&p->sent, &acked, to - 1, p->now, p->cc.recovery_start) != LEAT_OK) {
        abort();
    }
    for (uint32_t i = 0; i <= old; i++) {
        if (leat_sent_ack_range(&p->sent, &acked, low, to) != LEAT_OK) {
            abort();
        }
        if (low < 52) {
            break;
        }
        to = low - 1;
        low = to - 50;
    }
    leat_sent_ack_finish(&p->sent, &acked, p->loss.rtt.min);
    leat_loss_on_ack(&p->loss, LEAT_SPACE_APP, &acked, 0, &lost);
    if (!p->with_cc) {
        return;
    }
    leat_cc_on_recovery(&p->cc, p->loss.now, &acked, &lost, 0, &p->loss.rtt, &p->flight);
    leat_pacer_set_rate(&p->pacer, &p->cc, &p->loss.rtt, p->now);
}

/* The best round's ns a packet. */
static double run(leat_mem *mem, uint64_t packets, uint32_t n, uint32_t old, bool with_cc)
{
    path *p = calloc(1, sizeof *p);
    uint64_t next = 0;
    double best = 1e9;

    if (!p) {
        abort();
    }
    leat_flight_init(&p->flight);
    leat_sent_init(&p->sent, mem, &p->flight, ops, p);
    leat_loss_init(&p->loss, true, 0, 0);
    p->loss.confirmed = true;
    p->with_cc = with_cc;
    leat_loss_set_space(&p->loss, LEAT_SPACE_APP, &p->sent);
    leat_cc_init(&p->cc, &leat_cc_newreno, SIZE, NULL, 0);
    leat_pacer_init(&p->pacer, SIZE);
    send_burst(p, WINDOW);
    for (int round = 1; round <= ROUNDS; round++) {
        uint64_t first = next;
        double before = seconds(), ns;

        for (; next < packets / ROUNDS * (uint64_t)round; next += n) {
            p->now += n * 1000;
            ack(p, next, n, old);
            send_burst(p, n);
        }
        ns = (seconds() - before) * 1e9 / (double)(next - first);
        best = ns < best ? ns : best;
    }
    leat_sent_free(&p->sent);
    free(p);
    return best;
}

static void show(leat_mem *mem, uint64_t packets, uint32_t n, uint32_t old)
{
    double bare = run(mem, packets, n, old, false);

    printf("%2u packets an ACK, %2u older ranges: %6.2f ns a packet, with controller and "
           "pacer %6.2f\n",
           n, old, bare, run(mem, packets, n, old, true));
}

int main(int argc, char **argv)
{
    uint64_t packets = (argc > 1 ? strtoull(argv[1], NULL, 10) : 20) * 1000000;
    leat_mem *mem;

    if (leat_mem_new(NULL, &mem) != LEAT_OK) {
        return 1;
    }
    for (uint32_t n = 2; n <= 32; n *= 2) {
        show(mem, packets, n, 0);
    }
    show(mem, packets, 8, 8);
    show(mem, packets, 32, 32);
    leat_mem_free(mem);
    return lost_frames != 0;
}

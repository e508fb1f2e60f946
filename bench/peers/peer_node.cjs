#!/usr/bin/env node
// bench/peers/peer_node.cjs: Buffer.allocUnsafe() of Node with its pool at 8 and at 64 KiB: what leat's
// slabs are modelled on. Each buffer is dropped at once, as in `leat bench buffers`, one at a time;
// Node's garbage collector runs when it wants to, and its time is in the figure.
//
// SPDX-License-Identifier: MIT
'use strict';

const ROUNDS = 51;
let kept;

function round(size, operations) {
  const start = process.hrtime.bigint();
  for (let i = 0; i < operations; i++) kept = Buffer.allocUnsafe(size);
  return Number(process.hrtime.bigint() - start) / operations;
}

for (const pool of [8192, 65536]) {
  Buffer.poolSize = pool;
  for (const size of [64, 1024, 4096, 8192, 16384, 32768]) {
    const operations = size < 4096 ? 20000 : 5000;
    round(size, operations);
    const before = process.cpuUsage();
    const ns = Array.from({ length: ROUNDS }, () => round(size, operations)).sort((a, b) => a - b);
    const used = process.cpuUsage(before);
    console.log(JSON.stringify({
      peer: 'Node', version: process.versions.node, work: 'buffers',
      name: `allocUnsafe(${size}), pool of ${pool / 1024} KiB`, ns_per_op: ns[ROUNDS >> 1],
      cpu_ns_per_op: (used.user + used.system) * 1000 / (operations * ROUNDS), allocs_per_op: null,
    }));
  }
}
if (kept.length === 0) process.exitCode = 1;

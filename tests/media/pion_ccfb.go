// RFC 8888 reports by pion's rtcp package, as ccfb_lines.c does it by leat: make SEED COUNT, and read.
//
// pion's rtcp in Debian 12 (1.2.10) is from before erratum 8166: to it num_reports is the number of metric
// blocks less one, and 0 means none. So each num_reports is taken down by one before pion reads a packet, and up
// by one in those that it writes; streams have two blocks or more, as with one the two readings cannot be told
// apart. `pion_ccfb old` reads without that, to show that the difference is there.
//
// SPDX-License-Identifier: MIT
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand"
	"os"
	"strconv"

	"github.com/pion/rtcp"
)

// Adds `by` to every num_reports; the lengths are those of the packet that counts.
func correct(p []byte, by int) {
	for at := 8; at+8 <= len(p)-4; {
		field := int(binary.BigEndian.Uint16(p[at+6:]))
		count := field
		if by > 0 {
			count++ // what pion means
		}
		binary.BigEndian.PutUint16(p[at+6:], uint16(field+by))
		at += 8 + 2*(count+count%2)
	}
}

func read(p []byte, by int) error {
	var report rtcp.CCFeedbackReport
	correct(p, by)
	if err := report.Unmarshal(p); err != nil {
		return err
	}
	fmt.Printf("%d %d", report.SenderSSRC, report.ReportTimestamp)
	for _, stream := range report.ReportBlocks {
		for i, block := range stream.MetricBlocks {
			received := 0
			if block.Received {
				received = 1
			}
			fmt.Printf(" | %d %d %d %d %d", stream.MediaSSRC, stream.BeginSequence+uint16(i), received, block.ECN,
				block.ArrivalTimeOffset)
		}
	}
	fmt.Println()
	return nil
}

func write(random *rand.Rand) error {
	report := rtcp.CCFeedbackReport{SenderSSRC: random.Uint32(), ReportTimestamp: random.Uint32()}
	for s := random.Intn(5); s > 0; s-- {
		stream := rtcp.CCFeedbackReportBlock{MediaSSRC: random.Uint32(), BeginSequence: uint16(random.Uint32())}
		for n := 2 + random.Intn(40); n > 0; n-- {
			block := rtcp.CCFeedbackMetricBlock{}
			if random.Intn(5) > 0 {
				block = rtcp.CCFeedbackMetricBlock{Received: true, ECN: rtcp.ECN(random.Intn(4)),
					ArrivalTimeOffset: uint16(random.Intn(8192))}
			}
			stream.MetricBlocks = append(stream.MetricBlocks, block)
		}
		report.ReportBlocks = append(report.ReportBlocks, stream)
	}
	p, err := report.Marshal()
	if err != nil {
		return err
	}
	correct(p, 1)
	fmt.Println(hex.EncodeToString(p))
	return nil
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	if len(os.Args) == 4 && os.Args[1] == "make" {
		seed, err := strconv.Atoi(os.Args[2])
		fail(err)
		count, err := strconv.Atoi(os.Args[3])
		fail(err)
		random := rand.New(rand.NewSource(int64(seed)))
		for ; count > 0; count-- {
			fail(write(random))
		}
		return
	}
	by := -1
	if len(os.Args) == 2 && os.Args[1] == "old" {
		by = 0
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<20), 1<<20)
	for lines.Scan() {
		p, err := hex.DecodeString(lines.Text())
		fail(err)
		fail(read(p, by))
	}
}

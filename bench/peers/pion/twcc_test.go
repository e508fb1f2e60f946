// What micro_twcc times, on pion/interceptor as Debian packages it: the same steady pattern, a batch of 100
// packets one a millisecond. The figure to read is cpu-ns/op: CPU time of the whole process, the garbage
// collector's too, as micro_twcc has it; ns/op is the clock on the wall, which other programs stretch. run.sh puts this file beside pion's packages, whose feedback adapter is internal.
//
// SPDX-License-Identifier: MIT
package leatbench

import (
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/pion/interceptor"
	"github.com/pion/interceptor/internal/cc"
	"github.com/pion/interceptor/pkg/twcc"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
)

const batch = 100

var sum int

// CPU time of the process, in nanoseconds.
func cpu() int64 {
	const processCPUTime = 2 // CLOCK_PROCESS_CPUTIME_ID
	var ts syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, processCPUTime, uintptr(unsafe.Pointer(&ts)), 0)
	return ts.Nano()
}

// Begins the time taken; what it returns ends it.
func measure(b *testing.B) func() {
	b.ReportAllocs()
	b.ResetTimer()
	before := cpu()
	return func() { b.ReportMetric(float64(cpu()-before)/float64(b.N), "cpu-ns/op") }
}

func record(r *twcc.Recorder, i int) {
	r.Record(2, uint16(i), int64(1000000+i*1000))
}

// One packet; the feedback is built outside the time taken, so that the list stays short.
func BenchmarkRecord(b *testing.B) {
	const group = 16 * batch
	r := twcc.NewRecorder(1)
	var spent int64
	b.ReportAllocs()
	for i := 0; i < b.N; i += group {
		before := cpu()
		for k := i; k < i+group; k++ {
			record(r, k)
		}
		spent += cpu() - before
		b.StopTimer()
		sum += len(r.BuildFeedbackPacket())
		b.StartTimer()
	}
	rounds := (b.N + group - 1) / group
	b.ReportMetric(float64(spent)/float64(rounds*group), "cpu-ns/op")
}

// 100 packets and their feedback, not serialised.
func BenchmarkRecordAndBuild(b *testing.B) {
	r := twcc.NewRecorder(1)
	defer measure(b)()
	for n := 0; n < b.N; n++ {
		for i := 0; i < batch; i++ {
			record(r, n*batch+i)
		}
		sum += len(r.BuildFeedbackPacket())
	}
}

// 100 packets and their feedback, as bytes.
func BenchmarkRecordAndMarshal(b *testing.B) {
	r := twcc.NewRecorder(1)
	defer measure(b)()
	for n := 0; n < b.N; n++ {
		for i := 0; i < batch; i++ {
			record(r, n*batch+i)
		}
		data, err := rtcp.Marshal(r.BuildFeedbackPacket())
		if err != nil {
			b.Fatal(err)
		}
		sum += len(data)
	}
}

func feedback(b *testing.B) []byte {
	r := twcc.NewRecorder(1)
	for i := 0; i < batch; i++ {
		record(r, i)
	}
	data, err := rtcp.Marshal(r.BuildFeedbackPacket())
	if err != nil {
		b.Fatal(err)
	}
	return data
}

// A feedback on 100, read.
func BenchmarkParse(b *testing.B) {
	data := feedback(b)
	defer measure(b)()
	for n := 0; n < b.N; n++ {
		var fb rtcp.TransportLayerCC
		if err := fb.Unmarshal(data); err != nil {
			b.Fatal(err)
		}
		sum += len(fb.RecvDeltas)
	}
}

func sent(b *testing.B, a *cc.FeedbackAdapter, h *rtp.Header, attributes interceptor.Attributes, i int) {
	ext := [2]byte{byte(i >> 8), byte(i)}
	if err := h.SetExtension(1, ext[:]); err != nil {
		b.Fatal(err)
	}
	if err := a.OnSent(time.Unix(0, int64(i)), h, 1200, attributes); err != nil {
		b.Fatal(err)
	}
}

func sender() (*cc.FeedbackAdapter, *rtp.Header, interceptor.Attributes) {
	attributes := interceptor.Attributes{cc.TwccExtensionAttributesKey: uint8(1)}
	return cc.NewFeedbackAdapter(), &rtp.Header{Version: 2, Extension: true, ExtensionProfile: 0xBEDE},
		attributes
}

// One sent packet remembered.
func BenchmarkSent(b *testing.B) {
	a, h, attributes := sender()
	defer measure(b)()
	for i := 0; i < b.N; i++ {
		sent(b, a, h, attributes, i)
	}
}

// A feedback on 100, from bytes to results.
func BenchmarkResults(b *testing.B) {
	data := feedback(b)
	a, h, attributes := sender()
	for i := 0; i < batch; i++ {
		sent(b, a, h, attributes, i)
	}
	defer measure(b)()
	for n := 0; n < b.N; n++ {
		var fb rtcp.TransportLayerCC
		if err := fb.Unmarshal(data); err != nil {
			b.Fatal(err)
		}
		acks, err := a.OnTransportCCFeedback(time.Unix(1, 0), &fb)
		if err != nil {
			b.Fatal(err)
		}
		sum += len(acks)
	}
}

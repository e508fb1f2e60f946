// bench/peers/quicgo/main.go: quic-go's transport parameters, with the values of `leat bench tparams`,
// encoded and decoded; prints the lines of JSON that bench/run.py reads (bench/peers/peer.h). Go's
// garbage collector runs when it wants to, and its time is in the figures.
//
// SPDX-License-Identifier: MIT
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"syscall"
	"time"

	"github.com/lucas-clemente/quic-go/internal/protocol"
	"github.com/lucas-clemente/quic-go/internal/wire"
)

const (
	rounds     = 51
	operations = 5000
)

// The version of the package, set by build.sh.
var version = "?"

var kept []byte

func processorTime() int64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return used.Utime.Nano() + used.Stime.Nano()
}

// One round to warm up, then so many: the median time, and the heap calls of all.
func measure(name string, operation func()) {
	round := func() float64 {
		start := time.Now()
		for i := 0; i < operations; i++ {
			operation()
		}
		return float64(time.Since(start).Nanoseconds()) / operations
	}
	var before, after runtime.MemStats
	ns := make([]float64, rounds)
	round()
	runtime.ReadMemStats(&before)
	cpu := processorTime()
	for i := range ns {
		ns[i] = round()
	}
	cpu = processorTime() - cpu
	runtime.ReadMemStats(&after)
	sort.Float64s(ns)
	fmt.Printf("{\"peer\": \"quic-go\", \"version\": \"%s\", \"work\": \"tparams\", \"name\": \"%s\", "+
		"\"ns_per_op\": %.3f, \"cpu_ns_per_op\": %.3f, \"allocs_per_op\": %.4f, \"bytes_per_op\": %.1f}\n",
		version, name, ns[rounds/2], float64(cpu)/(rounds*operations),
		float64(after.Mallocs-before.Mallocs)/(rounds*operations),
		float64(after.TotalAlloc-before.TotalAlloc)/(rounds*operations))
}

func parameters(server bool) *wire.TransportParameters {
	p := &wire.TransportParameters{
		MaxIdleTimeout:                 30 * time.Second,
		MaxUDPPayloadSize:              1472,
		InitialMaxData:                 16 << 20,
		InitialMaxStreamDataBidiLocal:  1 << 20,
		InitialMaxStreamDataBidiRemote: 1 << 20,
		InitialMaxStreamDataUni:        1 << 20,
		MaxBidiStreamNum:               100,
		MaxUniStreamNum:                100,
		MaxAckDelay:                    protocol.DefaultMaxAckDelay,
		AckDelayExponent:               protocol.DefaultAckDelayExponent,
		ActiveConnectionIDLimit:        8,
		MaxDatagramFrameSize:           65535,
		InitialSourceConnectionID:      protocol.ConnectionID{1, 2, 3, 4, 5, 6, 7, 8},
	}
	if server {
		p.OriginalDestinationConnectionID = protocol.ConnectionID("abcdefghijklmnopqr")
		p.StatelessResetToken = &protocol.StatelessResetToken{0x5a}
	}
	return p
}

func main() {
	runtime.GOMAXPROCS(1)
	for _, what := range []struct {
		action string
		decode bool
	}{{"encode", false}, {"decode", true}} {
		for _, side := range []struct {
			name string
			pers protocol.Perspective
		}{{"client's", protocol.PerspectiveClient}, {"server's", protocol.PerspectiveServer}} {
			p := parameters(side.pers == protocol.PerspectiveServer)
			encoded := p.Marshal(side.pers)
			operation := func() { kept = p.Marshal(side.pers) }
			if what.decode {
				operation = func() {
					var out wire.TransportParameters
					if err := out.Unmarshal(encoded, side.pers); err != nil {
						fmt.Fprintln(os.Stderr, err)
						os.Exit(1)
					}
				}
			}
			measure(what.action+", "+side.name, operation)
		}
	}
}

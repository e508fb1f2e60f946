# leat's front door. CMake does the work (CMakePresets.json); every target here is one line of it.

PREFIX ?= /usr/local
JOBS   ?= $(shell nproc)
export JOBS

.PHONY: build cc estimate realtime run test test-release test-asan test-tsan sim fuzz soak memcheck \
        mutants coverage lint analyze tidy format bench bench-gate bench-peers bench-limit reproduce debug asan \
        tsan install setup clean help

build: ; @scripts/build.sh release
debug: ; @scripts/build.sh debug
asan:  ; @scripts/build.sh asan
tsan:  ; @scripts/build.sh tsan

run: ; @scripts/setup.sh build && scripts/build.sh release leat alloccount && scripts/run-demo.sh

test:         ; @scripts/setup.sh build test && scripts/test.sh release asan tsan
test-release: ; @scripts/test.sh release
test-asan:    ; @scripts/test.sh asan
test-tsan:    ; @scripts/test.sh tsan

SEEDS ?= 100000
FIRST ?= 1

sim: ; @scripts/setup.sh build test && scripts/build.sh release leat-sim && scripts/sim.sh $(FIRST) $(SEEDS)

FUZZ_SECONDS ?= 180
FUZZ_TARGETS ?=

fuzz: ; @scripts/setup.sh build tidy && fuzz/run.sh $(FUZZ_SECONDS) $(FUZZ_TARGETS)

SOAK_SECONDS ?= 1800
SOAK_SEED    ?= 1

soak: ; @scripts/setup.sh build test && scripts/build.sh release leat-soak udplink && \
         tests/soak/soak.py --program build/release/tests/soak/leat-soak \
             --udplink build/release/tests/support/udplink/udplink \
             --seconds $(SOAK_SECONDS) --seed $(SOAK_SEED)

memcheck: ; @scripts/setup.sh build test && scripts/memcheck.sh

mutants: ; @scripts/setup.sh build test && tests/mutants/run.py --work build/mutants

coverage: ; @scripts/setup.sh build test && scripts/coverage.sh
lint:     ; @scripts/setup.sh build tidy && scripts/lint.sh
analyze:  ; @scripts/setup.sh build && scripts/analyze.sh

tidy:   ; @scripts/setup.sh build tidy && tools/tidy/run
format: ; @tools/tidy/format

bench: ; @scripts/setup.sh build test peers && \
          scripts/build.sh release leat alloccount micro_sent micro_twcc udp_echo bench_limit bench_peers && \
          scripts/bench.sh

bench-gate: ; @scripts/setup.sh build test && scripts/build.sh release leat leat-sim alloccount && \
               bench/gate.py

bench-peers: ; @scripts/setup.sh build test peers && \
                scripts/build.sh release leat bench_peers micro_twcc && \
                { bench/peers/backports.sh build/release/bench/peers/backports || true; } && \
                bench/peers/ngtcp2.py && bench/peers/rates.py && bench/peers/pion/run.sh

bench-limit: ; @scripts/setup.sh build test peers && scripts/build.sh release leat bench_limit && \
                bench/limit/run.py

cc: ; @scripts/build.sh release leat-cc-campaign && \
       scripts/record.sh tests/cc/leat-cc-campaign docs/CONGESTION.md docs/congestion

estimate: ; @scripts/build.sh release leat-estimate-campaign && \
             scripts/record.sh tests/cc/leat-estimate-campaign docs/ESTIMATE.md docs/estimate

realtime: ; @scripts/setup.sh build test realtime && scripts/build.sh release leat udplink && scripts/realtime.sh

reproduce: ; @scripts/setup.sh build && scripts/build.sh release leat alloccount reproduce && \
              bench/reproduce/run.py

install: ; @scripts/build.sh release installed && scripts/install.sh "$(PREFIX)"

setup: ; @scripts/setup.sh build test tidy

clean: ; rm -rf build

help:
	@echo "make              build the library and the command into build/release"
	@echo "make run          set up, build, then serve and fetch a 256 MiB file over QUIC on loopback"
	@echo "make test         set up, then every test: release, ASan and UBSan, TSan"
	@echo "make test-release, test-asan, test-tsan    one of the three"
	@echo "make sim          the simulator at length: SEEDS=$(SEEDS) seeds from FIRST=$(FIRST) on, and 1 GiB"
	@echo "make fuzz         each fuzz target for FUZZ_SECONDS=$(FUZZ_SECONDS); FUZZ_TARGETS= names some"
	@echo "make soak         SOAK_SECONDS=$(SOAK_SECONDS) of mixed load over bad links, the server killed now and then"
	@echo "make mutants      breaks some 300 rules of RFCs and drafts, one by one: a unit test has to notice each"
	@echo "make coverage     lines and branches that the tests reach, by file"
	@echo "make lint         clang-tidy with the checks of .clang-tidy"
	@echo "make analyze      gcc's static analyzer"
	@echo "make memcheck     the unit tests under valgrind, on the debug build"
	@echo "make tidy         set up, then format, include edges, heap, system calls, names, warnings, cppcheck"
	@echo "make format       clang-format every C file in place"
	@echo "make bench        every measurement, beside the peers too, into docs/BENCHMARKS.md: some twenty minutes"
	@echo "make bench-gate   instruction counts and heap calls, held to bench/gate.json"
	@echo "make bench-peers  leat against ngtcp2 and quic-go of Debian on loopback and pion's TWCC, some minutes"
	@echo "make bench-limit  leat against the least that bulk costs, and TLS over TCP, a minute"
	@echo "make cc           run the congestion control experiments and write docs/CONGESTION.md's record"
	@echo "make estimate     the same for the bandwidth estimate and docs/ESTIMATE.md"
	@echo "make realtime     a clip over leat and over SRT across a bad path: docs/REALTIME.md"
	@echo "make reproduce    put the old way of five published changes back and compare: docs/SEEDS.md"
	@echo "make debug, asan, tsan                     build only, into build/NAME"
	@echo "make install      install under PREFIX ($(PREFIX)); DESTDIR is honoured"
	@echo "make setup        install every Debian package that building, testing and tidying need"
	@echo "make clean        remove build/"

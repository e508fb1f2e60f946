#!/bin/sh
# run.sh [MICRO_TWCC]: TWCC on leat and on pion/interceptor (Debian: golang-go,
# golang-github-pion-interceptor-dev), one after the other, three times in turns.
set -eu
cd "$(dirname "$0")/../../.."
micro=${1:-build/release/bench/micro_twcc}
pion=/usr/share/gocode/src/github.com/pion/interceptor
[ -d "$pion" ] || { echo "run.sh: golang-github-pion-interceptor-dev is not installed" >&2; exit 1; }

# pion's feedback adapter is internal: the benchmark has to lie among its packages. A GOPATH of our own
# has copies of them; everything else is found in Debian's.
work=$PWD/build/peers/pion
mkdir -p "$work/src/github.com/pion"
rm -rf "$work/src/github.com/pion/interceptor"
cp -rL "$pion" "$work/src/github.com/pion/interceptor"
mkdir "$work/src/github.com/pion/interceptor/leatbench"
cp bench/peers/pion/twcc_test.go "$work/src/github.com/pion/interceptor/leatbench/"
GO111MODULE=off GOPATH=$work:/usr/share/gocode GOCACHE=$work/cache GOFLAGS=-trimpath
export GO111MODULE GOPATH GOCACHE GOFLAGS
go test -c -o "$work/twcc.test" github.com/pion/interceptor/leatbench

for turn in 1 2 3; do
    echo "== leat, turn $turn"
    "$micro" --count 4000000 --pattern steady
    echo "== pion, turn $turn"
    GOMAXPROCS=1 "$work/twcc.test" -test.bench . -test.benchtime 0.5s | grep '^Benchmark'
done

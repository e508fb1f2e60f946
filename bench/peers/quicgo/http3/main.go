// bench/peers/quicgo/http3/main.go: quic-go over sockets, for bench/peers/ngtcp2.py and rates.py.
//
//	quicgo_http3 server DIR CERT KEY              serves the files of DIR over HTTP/3 at 127.0.0.1, a port of the system's
//	quicgo_http3 requests PORT PATH COUNT AT_ONCE    asks for a file so often, on one connection
//	quicgo_http3 handshakes PORT AT_ONCE SECONDS  a connection each; prints one JSON object
//
// Defaults of the library but for flow control: windows may grow as far as those of the other peers. The
// certificate is not checked.
//
// SPDX-License-Identifier: MIT
package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	quic "github.com/lucas-clemente/quic-go"
	"github.com/lucas-clemente/quic-go/http3"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "quicgo_http3:", err)
		os.Exit(1)
	}
}

func number(text string) float64 {
	value, err := strconv.ParseFloat(text, 64)
	must(err)
	return value
}

func settings() *quic.Config {
	return &quic.Config{
		MaxStreamReceiveWindow:     16 << 20,
		MaxConnectionReceiveWindow: 24 << 20,
	}
}

func clientTLS() *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h3"}, CurvePreferences: []tls.CurveID{tls.X25519}}
}

func serve(dir, cert, key string) {
	pair, err := tls.LoadX509KeyPair(cert, key)
	must(err)
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	must(err)
	server := http3.Server{
		Handler:    http.FileServer(http.Dir(dir)),
		TLSConfig:  http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{pair}}),
		QuicConfig: settings(),
	}
	must(server.Serve(conn))
}

func requests(port, path string, count, atOnce int64) {
	client := &http.Client{Transport: &http3.RoundTripper{
		TLSClientConfig: clientTLS(), QuicConfig: settings(), DisableCompression: true}}
	left := count
	var all sync.WaitGroup
	for i := int64(0); i < atOnce; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			room := make([]byte, 64<<10)
			for atomic.AddInt64(&left, -1) >= 0 {
				answer, err := client.Get("https://127.0.0.1:" + port + path)
				must(err)
				if answer.StatusCode != http.StatusOK {
					must(fmt.Errorf("status %d", answer.StatusCode))
				}
				got, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, answer.Body, room)
				must(err)
				if answer.ContentLength >= 0 && got != answer.ContentLength {
					must(fmt.Errorf("%d bytes of %d", got, answer.ContentLength))
				}
				answer.Body.Close()
			}
		}()
	}
	all.Wait()
}

func handshakes(port string, atOnce int64, seconds float64) {
	var done int64
	began := time.Now()
	end := began.Add(time.Duration(seconds * float64(time.Second)))
	var all sync.WaitGroup
	for i := int64(0); i < atOnce; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for time.Now().Before(end) {
				conn, err := quic.DialAddr("127.0.0.1:"+port, clientTLS(), settings())
				must(err)
				if !conn.ConnectionState().TLS.HandshakeComplete {
					must(context.DeadlineExceeded)
				}
				atomic.AddInt64(&done, 1)
				must(conn.CloseWithError(0, ""))
			}
		}()
	}
	all.Wait()
	fmt.Printf("{\"operations\": %d, \"seconds\": %.6f}\n", done, time.Since(began).Seconds())
}

func main() {
	switch {
	case len(os.Args) == 5 && os.Args[1] == "server":
		serve(os.Args[2], os.Args[3], os.Args[4])
	case len(os.Args) == 6 && os.Args[1] == "requests":
		requests(os.Args[2], os.Args[3], int64(number(os.Args[4])), int64(number(os.Args[5])))
	case len(os.Args) == 5 && os.Args[1] == "handshakes":
		handshakes(os.Args[2], int64(number(os.Args[3])), number(os.Args[4]))
	default:
		fmt.Fprintln(os.Stderr, "usage: quicgo_http3 server DIR CERT KEY | requests PORT PATH COUNT AT_ONCE | "+
			"handshakes PORT AT_ONCE SECONDS")
		os.Exit(2)
	}
}

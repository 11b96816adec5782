// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/1996fanrui/agents-sandbox/api/generated/agboxv1"
)

type answering struct {
	agboxv1.UnimplementedSandboxServiceServer
}

func (answering) Ping(context.Context, *agboxv1.PingRequest) (*agboxv1.PingResponse, error) {
	return &agboxv1.PingResponse{}, nil
}

// A stream may be silent for hours between two restarts of the daemon.
func TestALossAfterALongSilenceIsAnotherOutage(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "agboxd.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	agboxv1.RegisterSandboxServiceServer(server, answering{})
	go func() { _ = server.Serve(listener) }() // it ends with Stop
	defer server.Stop()
	c, err := New(WithSocketPath(socket))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	longAgo := time.Now().Add(-time.Hour)
	silent := &outage{client: c, what: "a silent stream", began: longAgo, reached: longAgo.Add(time.Second)}
	if err := silent.wait(t.Context(), io.EOF); err != nil {
		t.Error(err)
	}
	// One that is ended at once again and again is not.
	ended := &outage{client: c, what: "a stream", began: longAgo, reached: time.Now()}
	if err := ended.wait(t.Context(), io.EOF); err == nil || !strings.Contains(err.Error(), "lost the daemon while waiting for a stream") {
		t.Error(err)
	}
}

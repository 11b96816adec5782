// SPDX-License-Identifier: Apache-2.0

package rawclient_test

import (
	"net"
	"path/filepath"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/1996fanrui/agents-sandbox/api/generated/agboxv1"
	"github.com/1996fanrui/agents-sandbox/sdk/go/rawclient"
)

// serve runs a daemon that answers what the real one cannot be made to answer, on a real socket.
func serve(t *testing.T, daemon agboxv1.SandboxServiceServer) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "agboxd.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	agboxv1.RegisterSandboxServiceServer(server, daemon)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return socket
}

func open(t *testing.T, socket string, options ...rawclient.CallOption) *rawclient.RawClient {
	t.Helper()
	client, err := rawclient.New(socket, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

// refusal is an error as the daemon sends it.
func refusal(t *testing.T, code codes.Code, message, domain, reason string, metadata map[string]string) error {
	t.Helper()
	refused, err := status.New(code, message).WithDetails(
		&errdetails.ErrorInfo{Domain: domain, Reason: reason, Metadata: metadata})
	if err != nil {
		t.Fatal(err)
	}
	return refused.Err()
}

// SPDX-License-Identifier: Apache-2.0

package rawclient

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/peer"

	"github.com/1996fanrui/agents-sandbox/api/generated/agboxv1"
)

// A RawClient calls one daemon. It is safe for concurrent use.
type RawClient struct {
	socket     string
	timeout    time.Duration
	connection *grpc.ClientConn
	stub       agboxv1.SandboxServiceClient
}

// New returns a client of the daemon at a socket. It connects with the first call.
func New(socketPath string, options ...CallOption) (*RawClient, error) {
	chosen := callOptions{timeout: defaultTimeout}
	for _, option := range options {
		option(&chosen)
	}
	connection, err := Dial(socketPath, chosen.dialOptions...)
	if err != nil {
		return nil, NewSandboxClientError("cannot use the socket "+socketPath+": "+err.Error(), err)
	}
	return &RawClient{
		socket:     socketPath,
		timeout:    chosen.timeout,
		connection: connection,
		stub:       agboxv1.NewSandboxServiceClient(connection),
	}, nil
}

// Close ends the connection, and with it all calls and streams.
func (c *RawClient) Close() error { return c.connection.Close() }

// SocketPath returns the path of the daemon's socket.
func (c *RawClient) SocketPath() string { return c.socket }

// WaitUntilReachable returns once the daemon answers, or with an error when the context is done.
func (c *RawClient) WaitUntilReachable(ctx context.Context) error {
	_, err := c.stub.Ping(ctx, &agboxv1.PingRequest{}, grpc.WaitForReady(true))
	return c.translate(err, true)
}

// prepare spares a call the delay before the next attempt to connect, and its failure, if the daemon has come back.
func (c *RawClient) prepare(ctx context.Context) {
	if c.connection.GetState() != connectivity.TransientFailure || tryToConnect(c.socket) != nil {
		return
	}
	c.connection.ResetConnectBackoff()
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	_ = c.WaitUntilReachable(ctx) // the call itself reports errors
}

type method[Request, Response any] func(context.Context, *Request, ...grpc.CallOption) (*Response, error)

func call[Request, Response any](
	ctx context.Context, c *RawClient, method method[Request, Response], request *Request,
) (*Response, error) {
	if _, isLimited := ctx.Deadline(); c.timeout > 0 && !isLimited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	c.prepare(ctx)
	var daemon peer.Peer
	response, err := method(ctx, request, grpc.Peer(&daemon))
	if err != nil {
		return nil, c.translate(err, daemon.Addr != nil)
	}
	return response, nil
}

// Ping returns the version and the health of the daemon.
func (c *RawClient) Ping(ctx context.Context) (*agboxv1.PingResponse, error) {
	return call(ctx, c, c.stub.Ping, &agboxv1.PingRequest{})
}

// CreateSandbox returns once the sandbox is accepted.
func (c *RawClient) CreateSandbox(
	ctx context.Context, request *agboxv1.CreateSandboxRequest,
) (*agboxv1.CreateSandboxResponse, error) {
	return call(ctx, c, c.stub.CreateSandbox, request)
}

// GetSandbox also returns deleted sandboxes, until their history is purged.
func (c *RawClient) GetSandbox(ctx context.Context, sandboxID string) (*agboxv1.GetSandboxResponse, error) {
	return call(ctx, c, c.stub.GetSandbox, &agboxv1.GetSandboxRequest{SandboxId: sandboxID})
}

// ListSandboxes returns one page. A nil request asks for the first page of all sandboxes.
func (c *RawClient) ListSandboxes(
	ctx context.Context, request *agboxv1.ListSandboxesRequest,
) (*agboxv1.ListSandboxesResponse, error) {
	if request == nil {
		request = &agboxv1.ListSandboxesRequest{}
	}
	return call(ctx, c, c.stub.ListSandboxes, request)
}

// ResumeSandbox returns once the resume is accepted.
func (c *RawClient) ResumeSandbox(ctx context.Context, sandboxID string) (*agboxv1.AcceptedResponse, error) {
	return call(ctx, c, c.stub.ResumeSandbox, &agboxv1.ResumeSandboxRequest{SandboxId: sandboxID})
}

// StopSandbox returns once the stop is accepted.
func (c *RawClient) StopSandbox(ctx context.Context, sandboxID string) (*agboxv1.AcceptedResponse, error) {
	return call(ctx, c, c.stub.StopSandbox, &agboxv1.StopSandboxRequest{SandboxId: sandboxID})
}

// DeleteSandbox returns once the delete is accepted.
func (c *RawClient) DeleteSandbox(ctx context.Context, sandboxID string) (*agboxv1.AcceptedResponse, error) {
	return call(ctx, c, c.stub.DeleteSandbox, &agboxv1.DeleteSandboxRequest{SandboxId: sandboxID})
}

// DeleteSandboxes returns once the deletes are accepted.
func (c *RawClient) DeleteSandboxes(
	ctx context.Context, request *agboxv1.DeleteSandboxesRequest,
) (*agboxv1.DeleteSandboxesResponse, error) {
	return call(ctx, c, c.stub.DeleteSandboxes, request)
}

// HoldSandbox holds a sandbox that was created with a lease, from the first message on and while the stream is open.
func (c *RawClient) HoldSandbox(
	ctx context.Context, sandboxID string,
) (Stream[agboxv1.HoldSandboxResponse], error) {
	return openStream(ctx, c, c.stub.HoldSandbox, &agboxv1.HoldSandboxRequest{SandboxId: sandboxID})
}

// SubscribeSandboxEvents streams the events of a sandbox after a sequence number; 0 means all.
func (c *RawClient) SubscribeSandboxEvents(
	ctx context.Context, sandboxID string, fromSequence uint64, includeCurrentSnapshot bool,
) (SandboxEventStream, error) {
	return openStream(ctx, c, c.stub.SubscribeSandboxEvents, &agboxv1.SubscribeSandboxEventsRequest{
		SandboxId:              sandboxID,
		FromSequence:           fromSequence,
		IncludeCurrentSnapshot: includeCurrentSnapshot,
	})
}

// SubscribeEvents streams the events of all sandboxes.
func (c *RawClient) SubscribeEvents(
	ctx context.Context, request *agboxv1.SubscribeEventsRequest,
) (Stream[agboxv1.SubscribeEventsResponse], error) {
	return openStream(ctx, c, c.stub.SubscribeEvents, request)
}

// CreateExec returns once the exec is recorded.
func (c *RawClient) CreateExec(
	ctx context.Context, request *agboxv1.CreateExecRequest,
) (*agboxv1.CreateExecResponse, error) {
	return call(ctx, c, c.stub.CreateExec, request)
}

// CancelExec returns once the cancel is accepted.
func (c *RawClient) CancelExec(ctx context.Context, execID string) (*agboxv1.AcceptedResponse, error) {
	return call(ctx, c, c.stub.CancelExec, &agboxv1.CancelExecRequest{ExecId: execID})
}

// GetExec returns the state of an exec.
func (c *RawClient) GetExec(ctx context.Context, execID string) (*agboxv1.GetExecResponse, error) {
	return call(ctx, c, c.stub.GetExec, &agboxv1.GetExecRequest{ExecId: execID})
}

// ListActiveExecs returns the first page of the running execs of a sandbox, or of all sandboxes if sandboxID is empty.
func (c *RawClient) ListActiveExecs(ctx context.Context, sandboxID string) (*agboxv1.ListActiveExecsResponse, error) {
	request := &agboxv1.ListActiveExecsRequest{}
	if sandboxID != "" {
		request.SandboxId = &sandboxID
	}
	return c.ListActiveExecsPage(ctx, request)
}

// ListActiveExecsPage returns any page of the running execs.
func (c *RawClient) ListActiveExecsPage(
	ctx context.Context, request *agboxv1.ListActiveExecsRequest,
) (*agboxv1.ListActiveExecsResponse, error) {
	return call(ctx, c, c.stub.ListActiveExecs, request)
}

// ListExecs returns one page of the running and ended execs of a sandbox.
func (c *RawClient) ListExecs(
	ctx context.Context, request *agboxv1.ListExecsRequest,
) (*agboxv1.ListExecsResponse, error) {
	return call(ctx, c, c.stub.ListExecs, request)
}

// ReadExecOutput streams the output of an exec from any offset.
func (c *RawClient) ReadExecOutput(
	ctx context.Context, request *agboxv1.ReadExecOutputRequest,
) (Stream[agboxv1.ReadExecOutputResponse], error) {
	return openStream(ctx, c, c.stub.ReadExecOutput, request)
}

// ReadContainerLogs streams what a container of a sandbox printed.
func (c *RawClient) ReadContainerLogs(
	ctx context.Context, request *agboxv1.ReadContainerLogsRequest,
) (Stream[agboxv1.ReadContainerLogsResponse], error) {
	return openStream(ctx, c, c.stub.ReadContainerLogs, request)
}

// GetStats returns what the containers of a sandbox use now.
func (c *RawClient) GetStats(ctx context.Context, sandboxID string) (*agboxv1.GetStatsResponse, error) {
	return call(ctx, c, c.stub.GetStats, &agboxv1.GetStatsRequest{SandboxId: sandboxID})
}

// WatchStats streams what the containers of a sandbox use.
func (c *RawClient) WatchStats(
	ctx context.Context, request *agboxv1.WatchStatsRequest,
) (Stream[agboxv1.WatchStatsResponse], error) {
	return openStream(ctx, c, c.stub.WatchStats, request)
}

// CopyOut packs a file or a directory of a sandbox as a tar stream. The stream is untrusted: client.Sandbox.CopyOut
// unpacks it safely.
func (c *RawClient) CopyOut(
	ctx context.Context, request *agboxv1.CopyOutRequest,
) (Stream[agboxv1.CopyOutResponse], error) {
	return openStream(ctx, c, c.stub.CopyOut, request)
}

// Diagnose checks what sandboxes require of the machine.
func (c *RawClient) Diagnose(
	ctx context.Context, request *agboxv1.DiagnoseRequest,
) (*agboxv1.DiagnoseResponse, error) {
	return call(ctx, c, c.stub.Diagnose, request)
}

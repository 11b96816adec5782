// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/1996fanrui/agents-sandbox/api/generated/agboxv1"
	"github.com/1996fanrui/agents-sandbox/sdk/go/client"
)

// A fakeDaemon answers what the real one cannot be made to answer, and crashes where a test wants it to. What a test
// does not set answers UNIMPLEMENTED.
type fakeDaemon struct {
	agboxv1.UnimplementedSandboxServiceServer
	t      *testing.T
	socket string

	createExec func(*agboxv1.CreateExecRequest) (*agboxv1.CreateExecResponse, error)
	cancelExec func(*agboxv1.CancelExecRequest) (*agboxv1.AcceptedResponse, error)
	getExec    func(*agboxv1.GetExecRequest) (*agboxv1.GetExecResponse, error)
	getSandbox func(*agboxv1.GetSandboxRequest) (*agboxv1.GetSandboxResponse, error)
	create     func(*agboxv1.CreateSandboxRequest) (*agboxv1.CreateSandboxResponse, error)
	deleted    func(*agboxv1.DeleteSandboxRequest) (*agboxv1.AcceptedResponse, error)
	list       func(*agboxv1.ListSandboxesRequest) (*agboxv1.ListSandboxesResponse, error)
	events     func(*agboxv1.SubscribeSandboxEventsRequest, agboxv1.SandboxService_SubscribeSandboxEventsServer) error
	attach     func(agboxv1.SandboxService_AttachExecServer) error
	output     func(*agboxv1.ReadExecOutputRequest, agboxv1.SandboxService_ReadExecOutputServer) error

	mutex  sync.Mutex
	server *grpc.Server
}

func newFakeDaemon(t *testing.T) *fakeDaemon {
	return &fakeDaemon{t: t, socket: filepath.Join(t.TempDir(), "agboxd.sock")}
}

// start makes it listen; its functions must be set by then.
func (d *fakeDaemon) start() {
	listener, err := net.Listen("unix", d.socket)
	if err != nil {
		d.t.Error(err)
		return
	}
	server := grpc.NewServer()
	agboxv1.RegisterSandboxServiceServer(server, d)
	d.mutex.Lock()
	d.server = server
	d.mutex.Unlock()
	go func() { _ = server.Serve(listener) }() // it ends with crash()
}

// crash cuts all connections. Called by a handler, it returns only after that has ended: use a goroutine.
func (d *fakeDaemon) crash() {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.server.Stop()
}

func (d *fakeDaemon) restart() {
	d.crash()
	d.start()
}

// afterFirstEvent does something once the client has received an event.
type afterFirstEvent struct {
	do   func()
	once sync.Once
}

func (h *afterFirstEvent) HandleRPC(_ context.Context, seen stats.RPCStats) {
	if payload, isPayload := seen.(*stats.InPayload); isPayload {
		if _, isEvent := payload.Payload.(*agboxv1.SandboxEvent); isEvent {
			h.once.Do(func() { go h.do() })
		}
	}
}

func (*afterFirstEvent) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }
func (*afterFirstEvent) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return ctx
}
func (*afterFirstEvent) HandleConn(context.Context, stats.ConnStats) {}

func (d *fakeDaemon) client(options ...client.Option) *client.Client {
	d.t.Helper()
	made, err := client.New(append(options, client.WithSocketPath(d.socket))...)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		d.crash()
		if err := made.Close(); err != nil {
			d.t.Error(err)
		}
	})
	return made
}

func answer[Request, Response any](handle func(Request) (Response, error), request Request) (Response, error) {
	if handle == nil {
		var none Response
		return none, status.Error(codes.Unimplemented, "not expected by this test")
	}
	return handle(request)
}

func (d *fakeDaemon) CreateExec(_ context.Context, r *agboxv1.CreateExecRequest) (*agboxv1.CreateExecResponse, error) {
	return answer(d.createExec, r)
}

func (d *fakeDaemon) CancelExec(_ context.Context, r *agboxv1.CancelExecRequest) (*agboxv1.AcceptedResponse, error) {
	return answer(d.cancelExec, r)
}

func (d *fakeDaemon) GetExec(_ context.Context, r *agboxv1.GetExecRequest) (*agboxv1.GetExecResponse, error) {
	return answer(d.getExec, r)
}

func (d *fakeDaemon) GetSandbox(_ context.Context, r *agboxv1.GetSandboxRequest) (*agboxv1.GetSandboxResponse, error) {
	return answer(d.getSandbox, r)
}

func (d *fakeDaemon) CreateSandbox(
	_ context.Context, r *agboxv1.CreateSandboxRequest,
) (*agboxv1.CreateSandboxResponse, error) {
	return answer(d.create, r)
}

func (d *fakeDaemon) DeleteSandbox(_ context.Context, r *agboxv1.DeleteSandboxRequest) (*agboxv1.AcceptedResponse, error) {
	return answer(d.deleted, r)
}

func (d *fakeDaemon) ListSandboxes(
	_ context.Context, r *agboxv1.ListSandboxesRequest,
) (*agboxv1.ListSandboxesResponse, error) {
	return answer(d.list, r)
}

func (d *fakeDaemon) Ping(context.Context, *agboxv1.PingRequest) (*agboxv1.PingResponse, error) {
	return &agboxv1.PingResponse{Version: "fake", Daemon: "agboxd"}, nil
}

func (d *fakeDaemon) SubscribeSandboxEvents(
	r *agboxv1.SubscribeSandboxEventsRequest, stream agboxv1.SandboxService_SubscribeSandboxEventsServer,
) error {
	return d.events(r, stream)
}

func (d *fakeDaemon) AttachExec(stream agboxv1.SandboxService_AttachExecServer) error {
	return d.attach(stream)
}

func (d *fakeDaemon) ReadExecOutput(
	r *agboxv1.ReadExecOutputRequest, stream agboxv1.SandboxService_ReadExecOutputServer,
) error {
	return d.output(r, stream)
}

func refusal(code codes.Code, reason string, metadata map[string]string) error {
	refused, err := status.New(code, "refused").WithDetails(&errdetails.ErrorInfo{Reason: reason, Metadata: metadata})
	if err != nil {
		panic(err)
	}
	return refused.Err()
}

func event(sequence uint64, state client.SandboxState) *agboxv1.SandboxEvent {
	return &agboxv1.SandboxEvent{
		Sequence: sequence, SandboxId: "box-1", SandboxState: agboxv1.SandboxState(state), OccurredAt: timestamppb.Now(),
	}
}

func sandbox(sequence uint64, state client.SandboxState) *agboxv1.SandboxHandle {
	return &agboxv1.SandboxHandle{
		SandboxId: "box-1", State: agboxv1.SandboxState(state), LastEventSequence: sequence,
	}
}

func exec(id string, state client.ExecState) *agboxv1.ExecStatus {
	return &agboxv1.ExecStatus{
		ExecId: id, SandboxId: "box-1", State: agboxv1.ExecState(state), LastEventSequence: 5,
	}
}

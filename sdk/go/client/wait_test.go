// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/1996fanrui/agents-sandbox/api/generated/agboxv1"
	"github.com/1996fanrui/agents-sandbox/sdk/go/client"
)

func pending(r *agboxv1.CreateSandboxRequest) (*agboxv1.CreateSandboxResponse, error) {
	return &agboxv1.CreateSandboxResponse{Sandbox: &agboxv1.SandboxHandle{
		SandboxId: r.GetSandboxId(), State: agboxv1.SandboxState_SANDBOX_STATE_PENDING, LastEventSequence: 1,
	}}, nil
}

func ready(r *agboxv1.GetSandboxRequest) (*agboxv1.GetSandboxResponse, error) {
	return &agboxv1.GetSandboxResponse{Sandbox: sandbox(3, client.SandboxStateReady)}, nil
}

func TestAWaitGoesOnBySequenceWhenTheDaemonIsBack(t *testing.T) {
	daemon := newFakeDaemon(t)
	daemon.create, daemon.getSandbox = pending, ready
	var begun []uint64
	daemon.events = func(r *agboxv1.SubscribeSandboxEventsRequest, stream agboxv1.SandboxService_SubscribeSandboxEventsServer) error {
		begun = append(begun, r.GetFromSequence())
		if len(begun) == 1 {
			return errors.Join(stream.Send(event(2, client.SandboxStatePending)), silent(r, stream))
		}
		return errors.Join(stream.Send(event(2, client.SandboxStatePending)), stream.Send(event(3, client.SandboxStateReady)))
	}
	daemon.start()
	c := daemon.client(client.WithDialOptions(grpc.WithStatsHandler(&afterFirstEvent{do: daemon.restart})))
	handle, err := c.CreateSandbox(t.Context(), client.WithImage("x"))
	if err != nil {
		t.Fatal(err)
	}
	if handle.State != client.SandboxStateReady || len(begun) != 2 || begun[0] != 1 || begun[1] != 2 {
		t.Errorf("%v after subscriptions from %v", handle.State, begun)
	}
}

func TestAWaitThatCannotSucceedSaysWhy(t *testing.T) {
	daemon := newFakeDaemon(t)
	daemon.create = pending
	daemon.events = func(_ *agboxv1.SubscribeSandboxEventsRequest, stream agboxv1.SandboxService_SubscribeSandboxEventsServer) error {
		failed := event(2, client.SandboxStateFailed)
		failed.Details = &agboxv1.SandboxEvent_SandboxPhase{SandboxPhase: &agboxv1.SandboxPhaseDetails{
			ErrorCode: "SANDBOX_CREATE_FAILED", ErrorMessage: "no such image",
		}}
		return stream.Send(failed)
	}
	daemon.start()
	_, err := daemon.client().CreateSandbox(t.Context(), client.WithImage("x"), client.WithSandboxID("box-1"))
	var failed *client.SandboxFailedError
	if !errors.As(err, &failed) || failed.SandboxID != "box-1" || failed.State != client.SandboxStateFailed ||
		failed.ErrorCode != "SANDBOX_CREATE_FAILED" {
		t.Fatalf("%#v", err)
	}
	want := "create_sandbox observed sandbox box-1 in FAILED state. SANDBOX_CREATE_FAILED: no such image"
	if err.Error() != want {
		t.Error(err)
	}
}

func silent(_ *agboxv1.SubscribeSandboxEventsRequest, stream agboxv1.SandboxService_SubscribeSandboxEventsServer) error {
	<-stream.Context().Done()
	return stream.Context().Err()
}

func TestAWaitIsLimited(t *testing.T) {
	daemon := newFakeDaemon(t)
	daemon.create, daemon.events = pending, silent
	daemon.start()
	_, err := daemon.client(client.WithOperationTimeout(50*time.Millisecond)).CreateSandbox(
		t.Context(), client.WithImage("x"), client.WithSandboxID("box-1"))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestADaemonThatStaysAwayEndsAWait(t *testing.T) {
	daemon := newFakeDaemon(t)
	daemon.create = pending
	daemon.events = func(r *agboxv1.SubscribeSandboxEventsRequest, stream agboxv1.SandboxService_SubscribeSandboxEventsServer) error {
		go daemon.crash()
		return silent(r, stream)
	}
	daemon.start()
	c := daemon.client(client.WithReconnectTimeout(100*time.Millisecond), client.WithOperationTimeout(0))
	_, err := c.CreateSandbox(t.Context(), client.WithImage("x"))
	if err == nil || !strings.Contains(err.Error(), "could not reach it for 100ms") {
		t.Error(err)
	}
	var base *client.SandboxClientError
	if !errors.As(err, &base) || base.Code() != codes.Unavailable {
		t.Errorf("%#v", err)
	}
}

func TestACallToADaemonThatDoesNotRunFailsAtOnce(t *testing.T) {
	daemon := newFakeDaemon(t)
	daemon.start()
	c := daemon.client()
	daemon.crash()
	_, err := c.Sandbox("box-1").Run(t.Context(), "true")
	if unreachable := (*client.DaemonUnreachableError)(nil); !errors.As(err, &unreachable) || unreachable.WasSent {
		t.Errorf("%#v", err)
	}
	_, err = c.Create(t.Context(), client.WithImage("x"))
	if unreachable := (*client.DaemonUnreachableError)(nil); !errors.As(err, &unreachable) {
		t.Errorf("%#v", err)
	}
}

func TestALostAnswerIsAskedForOnceMoreWithTheSameID(t *testing.T) {
	daemon := newFakeDaemon(t)
	var ids []string
	daemon.createExec = func(r *agboxv1.CreateExecRequest) (*agboxv1.CreateExecResponse, error) {
		ids = append(ids, r.GetExecId())
		if len(ids) == 1 { // it is accepted, but the answer is lost
			return nil, refusal(codes.Unavailable, "", nil)
		}
		return nil, refusal(codes.AlreadyExists, "EXEC_ID_ALREADY_EXISTS", map[string]string{"exec_id": r.GetExecId()})
	}
	daemon.getExec = func(r *agboxv1.GetExecRequest) (*agboxv1.GetExecResponse, error) {
		status := exec(r.GetExecId(), client.ExecStateRunning)
		status.StdoutLogPath = "/log"
		return &agboxv1.GetExecResponse{Exec: status}, nil
	}
	daemon.start()
	handle, err := daemon.client().CreateExec(t.Context(), "box-1", []string{"true"})
	if err != nil {
		t.Fatal(err)
	}
	if len(ids) != 2 || ids[0] != ids[1] || handle.ExecID != ids[0] || len(ids[0]) != 36 || *handle.StdoutLogPath != "/log" {
		t.Errorf("%v %+v", ids, handle)
	}
}

func TestARequestWithAnIDOfTheCallerIsSentOnce(t *testing.T) {
	daemon := newFakeDaemon(t)
	var calls atomic.Int32
	daemon.createExec = func(*agboxv1.CreateExecRequest) (*agboxv1.CreateExecResponse, error) {
		calls.Add(1)
		return nil, refusal(codes.Unavailable, "", nil)
	}
	daemon.start()
	_, err := daemon.client().CreateExec(t.Context(), "box-1", []string{"true"}, client.WithExecID("mine"))
	if unreachable := (*client.DaemonUnreachableError)(nil); !errors.As(err, &unreachable) || !unreachable.WasSent || calls.Load() != 1 {
		t.Errorf("%d calls: %#v", calls.Load(), err)
	}
}

func TestWhatANewerDaemonSaysDoesNotBreakAClient(t *testing.T) {
	daemon := newFakeDaemon(t)
	daemon.create = pending
	daemon.getSandbox = func(*agboxv1.GetSandboxRequest) (*agboxv1.GetSandboxResponse, error) {
		return &agboxv1.GetSandboxResponse{Sandbox: sandbox(9, 77)}, nil
	}
	daemon.events = func(_ *agboxv1.SubscribeSandboxEventsRequest, stream agboxv1.SandboxService_SubscribeSandboxEventsServer) error {
		unknown := event(2, 77)
		unknown.EventType = 88
		unknown.Details = &agboxv1.SandboxEvent_Exec{Exec: &agboxv1.ExecEventDetails{ExecId: "e", ExecState: 99}}
		return errors.Join(stream.Send(unknown), stream.Send(event(3, client.SandboxStateReady)), silent(nil, stream))
	}
	daemon.start()
	c := daemon.client()
	handle, err := c.CreateSandbox(t.Context(), client.WithImage("x"))
	if err != nil || handle.State != 77 || handle.State.String() != "SandboxState(77)" {
		t.Fatalf("%v %v", handle.State, err)
	}
	for event, err := range c.Sandbox("box-1").Events(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if event.EventType != 88 || event.EventType.String() != "88" || *event.SandboxState != 77 ||
			event.Exec.ExecState.String() != "ExecState(99)" || event.Exec.ExecState.IsTerminal() {
			t.Errorf("%+v", event)
		}
		break
	}
}

func TestWhatCannotBeIsAnError(t *testing.T) {
	daemon := newFakeDaemon(t)
	daemon.getSandbox = func(*agboxv1.GetSandboxRequest) (*agboxv1.GetSandboxResponse, error) {
		return &agboxv1.GetSandboxResponse{}, nil
	}
	daemon.getExec = func(r *agboxv1.GetExecRequest) (*agboxv1.GetExecResponse, error) {
		status := exec(r.GetExecId(), client.ExecStateRunning)
		status.LastEventSequence = 0
		return &agboxv1.GetExecResponse{Exec: status}, nil
	}
	daemon.events = func(_ *agboxv1.SubscribeSandboxEventsRequest, stream agboxv1.SandboxService_SubscribeSandboxEventsServer) error {
		return stream.Send(&agboxv1.SandboxEvent{Sequence: 1, EventId: "box-1-1"})
	}
	daemon.start()
	c := daemon.client()
	if _, err := c.GetSandbox(t.Context(), "box-1"); err == nil || !strings.Contains(err.Error(), "no sandbox") {
		t.Error(err)
	}
	if _, err := c.GetExec(t.Context(), "e"); err == nil || !strings.Contains(err.Error(), "no last_event_sequence") {
		t.Error(err)
	}
	item := <-c.SubscribeSandboxEvents(t.Context(), "box-1")
	if item.Err == nil || !strings.Contains(item.Err.Error(), `"box-1-1" has no occurred_at`) {
		t.Error(item.Err)
	}
}

func TestASubscriptionEndsWhenTheHistoryIsPurged(t *testing.T) {
	daemon := newFakeDaemon(t)
	var subscriptions atomic.Int32
	daemon.events = func(r *agboxv1.SubscribeSandboxEventsRequest, stream agboxv1.SandboxService_SubscribeSandboxEventsServer) error {
		if subscriptions.Add(1) == 1 {
			snapshot := event(4, client.SandboxStateDeleted)
			snapshot.Snapshot = true
			return errors.Join(stream.Send(snapshot), stream.Send(event(5, client.SandboxStateDeleted)))
		}
		if r.GetFromSequence() != 5 || r.GetIncludeCurrentSnapshot() {
			t.Errorf("%v", r)
		}
		return refusal(codes.NotFound, "SANDBOX_NOT_FOUND", map[string]string{"sandbox_id": "box-1"})
	}
	daemon.start()
	var sequences []uint64
	for item := range daemon.client().SubscribeSandboxEvents(t.Context(), "box-1", client.WithIncludeCurrentSnapshot(true)) {
		if item.Err != nil {
			t.Fatal(item.Err)
		}
		sequences = append(sequences, item.Event.Sequence)
	}
	if len(sequences) != 2 || sequences[0] != 4 || sequences[1] != 5 {
		t.Error(sequences)
	}
}

func TestASubscriptionEndsWithItsContext(t *testing.T) {
	daemon := newFakeDaemon(t)
	daemon.events = silent
	daemon.start()
	ctx, cancel := context.WithCancel(t.Context())
	items := daemon.client().SubscribeSandboxEvents(ctx, "box-1")
	cancel()
	if item, isOpen := <-items; isOpen {
		t.Errorf("%+v", item)
	}
	limited := daemon.client(client.WithStreamTimeout(50*time.Millisecond)).SubscribeSandboxEvents(t.Context(), "box-1")
	if item := <-limited; !errors.Is(item.Err, context.DeadlineExceeded) {
		t.Errorf("%+v", item)
	}
	if _, isOpen := <-limited; isOpen {
		t.Error("it goes on after an error")
	}
}

func TestListsHaveAllPages(t *testing.T) {
	daemon := newFakeDaemon(t)
	daemon.list = func(r *agboxv1.ListSandboxesRequest) (*agboxv1.ListSandboxesResponse, error) {
		next := map[string]string{"": "second", "second": ""}[r.GetPageToken()]
		if !r.GetIncludeDeleted() || r.GetLabelSelector()["a"] != "b" {
			t.Errorf("%v", r)
		}
		return &agboxv1.ListSandboxesResponse{
			Sandboxes: []*agboxv1.SandboxHandle{sandbox(1, client.SandboxStateReady)}, NextPageToken: next,
		}, nil
	}
	daemon.start()
	found, err := daemon.client().ListSandboxes(t.Context(), client.WithIncludeDeleted(true),
		client.WithLabelSelector(map[string]string{"a": "b"}))
	if err != nil || len(found) != 2 {
		t.Errorf("%v %v", found, err)
	}
}

func TestOutputGoesOnFromTheNextByteWhenTheDaemonIsBack(t *testing.T) {
	daemon := newFakeDaemon(t)
	var offsets []uint64
	daemon.output = func(r *agboxv1.ReadExecOutputRequest, stream agboxv1.SandboxService_ReadExecOutputServer) error {
		offsets = append(offsets, r.GetOffset())
		if len(offsets) == 1 {
			err := stream.Send(&agboxv1.ReadExecOutputResponse{Data: []byte("hello ")})
			<-stream.Context().Done()
			return err
		}
		return stream.Send(&agboxv1.ReadExecOutputResponse{Offset: 6, Data: []byte("world")})
	}
	daemon.start()
	reader := daemon.client().Exec("e").Stdout(t.Context())
	text := make([]byte, 6)
	if _, err := io.ReadFull(reader, text); err != nil || string(text) != "hello " {
		t.Fatalf("%q %v", text, err)
	}
	daemon.restart()
	text, err := io.ReadAll(reader)
	if err := errors.Join(err, reader.Close()); err != nil || string(text) != "world" {
		t.Errorf("%q %v", text, err)
	}
	if len(offsets) != 2 || offsets[1] != 6 {
		t.Error(offsets)
	}
}

func TestAReaderOfOutputEndsWithItsContextAndWithClose(t *testing.T) {
	daemon := newFakeDaemon(t)
	daemon.output = func(_ *agboxv1.ReadExecOutputRequest, stream agboxv1.SandboxService_ReadExecOutputServer) error {
		<-stream.Context().Done()
		return stream.Context().Err()
	}
	daemon.start()
	c := daemon.client()
	ctx, cancel := context.WithCancel(t.Context())
	reader := c.Exec("e").Stderr(ctx)
	cancel()
	if _, err := io.ReadAll(reader); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	reader = c.Exec("e").Stdout(t.Context())
	ended := make(chan error)
	go func() {
		_, err := reader.Read(make([]byte, 1))
		ended <- err
	}()
	if err := reader.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("Read did not end")
	}
}

// runUntilCancelled makes an exec write something and then run until it is cancelled.
func runUntilCancelled(daemon *fakeDaemon) <-chan struct{} {
	cancelled := make(chan struct{})
	daemon.createExec = accepted
	daemon.cancelExec = func(*agboxv1.CancelExecRequest) (*agboxv1.AcceptedResponse, error) {
		close(cancelled)
		return &agboxv1.AcceptedResponse{Accepted: true}, nil
	}
	daemon.attach = func(stream agboxv1.SandboxService_AttachExecServer) error {
		first, err := stream.Recv()
		if err != nil {
			return err
		}
		if first.GetStart().GetOutput() {
			err = stream.Send(&agboxv1.AttachExecResponse{Message: &agboxv1.AttachExecResponse_Output{
				Output: &agboxv1.AttachOutput{Stream: agboxv1.OutputStream_OUTPUT_STREAM_STDOUT, Data: []byte("begun")},
			}})
		}
		select {
		case <-cancelled:
			status := exec(first.GetStart().GetExecId(), client.ExecStateCancelled)
			return stream.Send(&agboxv1.AttachExecResponse{Message: &agboxv1.AttachExecResponse_Ended{Ended: status}})
		case <-stream.Context().Done():
			return errors.Join(err, stream.Context().Err())
		}
	}
	return cancelled
}

func accepted(r *agboxv1.CreateExecRequest) (*agboxv1.CreateExecResponse, error) {
	return &agboxv1.CreateExecResponse{ExecId: r.GetExecId()}, nil
}

// A signalWriter says when something is written.
type signalWriter chan struct{}

func (w signalWriter) Write(data []byte) (int, error) {
	close(w)
	return len(data), nil
}

func TestTheContextOfARunCancelsTheCommand(t *testing.T) {
	daemon := newFakeDaemon(t)
	cancelled := runUntilCancelled(daemon)
	daemon.start()
	ctx, cancel := context.WithCancel(t.Context())
	begun := make(signalWriter)
	go func() {
		<-begun
		cancel()
	}()
	_, err := daemon.client().Sandbox("box-1").RunCommand(ctx, client.Command{Args: []string{"sleep"}, Stdout: begun})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	select {
	case <-cancelled:
	default:
		t.Error("the command was not cancelled")
	}
}

func TestAWriterThatFailsEndsTheRun(t *testing.T) {
	daemon := newFakeDaemon(t)
	cancelled := runUntilCancelled(daemon)
	daemon.start()
	reader, writer := io.Pipe()
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := daemon.client().Sandbox("box-1").RunCommand(t.Context(), client.Command{Args: []string{"x"}, Stdout: writer})
	if !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
	<-cancelled
}

func TestTheContextOfACreateDeletesTheSandbox(t *testing.T) {
	daemon := newFakeDaemon(t)
	ctx, cancel := context.WithCancel(t.Context())
	daemon.create = pending
	daemon.events = func(r *agboxv1.SubscribeSandboxEventsRequest, stream agboxv1.SandboxService_SubscribeSandboxEventsServer) error {
		cancel()
		return silent(r, stream)
	}
	var deleted string
	daemon.deleted = func(r *agboxv1.DeleteSandboxRequest) (*agboxv1.AcceptedResponse, error) {
		deleted = r.GetSandboxId()
		return &agboxv1.AcceptedResponse{Accepted: true}, nil
	}
	daemon.start()
	_, err := daemon.client().Create(ctx, client.WithImage("x"))
	if !errors.Is(err, context.Canceled) || len(deleted) != 36 {
		t.Errorf("%v %q", err, deleted)
	}
}

func TestOutputOfARunIsBounded(t *testing.T) {
	daemon := newFakeDaemon(t)
	daemon.createExec = accepted
	daemon.attach = func(stream agboxv1.SandboxService_AttachExecServer) error {
		first, err := stream.Recv()
		if err != nil {
			return err
		}
		for _, text := range []string{"hello ", "world"} {
			err = errors.Join(err, stream.Send(&agboxv1.AttachExecResponse{Message: &agboxv1.AttachExecResponse_Output{
				Output: &agboxv1.AttachOutput{Stream: agboxv1.OutputStream_OUTPUT_STREAM_STDOUT, Data: []byte(text)},
			}}))
		}
		status := exec(first.GetStart().GetExecId(), client.ExecStateFinished)
		return errors.Join(err, stream.Send(&agboxv1.AttachExecResponse{Message: &agboxv1.AttachExecResponse_Ended{Ended: status}}))
	}
	daemon.start()
	result, err := daemon.client().Sandbox("box-1").RunCommand(t.Context(), client.Command{Args: []string{"x"}, MaxOutput: 8})
	if err != nil {
		t.Fatal(err)
	}
	if string(result.Stdout) != "hello wo" || !result.IsTruncated || result.Err() != nil {
		t.Errorf("%+v", result)
	}
}

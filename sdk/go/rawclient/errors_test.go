// SPDX-License-Identifier: Apache-2.0

package rawclient_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/1996fanrui/agents-sandbox/api/generated/agboxv1"
	"github.com/1996fanrui/agents-sandbox/sdk/go/rawclient"
)

// refusing answers every call with the same error.
type refusing struct {
	agboxv1.UnimplementedSandboxServiceServer
	err error
}

func (d refusing) GetSandbox(context.Context, *agboxv1.GetSandboxRequest) (*agboxv1.GetSandboxResponse, error) {
	return nil, d.err
}

func (d refusing) SubscribeSandboxEvents(
	*agboxv1.SubscribeSandboxEventsRequest, agboxv1.SandboxService_SubscribeSandboxEventsServer,
) error {
	return d.err
}

func TestEveryReasonIsATypedErrorWithItsFields(t *testing.T) {
	sandbox, exec := map[string]string{"sandbox_id": "box-1"}, map[string]string{"exec_id": "exec-1"}
	seven := uint64(7)
	for _, test := range []struct {
		reason   string
		code     codes.Code
		sent     string
		metadata map[string]string
		want     any // a pointer to the typed error, with the fields besides the base
		message  string
	}{
		{"SANDBOX_NOT_FOUND", codes.NotFound, "sandbox box-1 was not found", sandbox,
			&rawclient.SandboxNotFoundError{SandboxID: "box-1"}, "Sandbox box-1 not found."},
		{"SANDBOX_ID_ALREADY_EXISTS", codes.AlreadyExists, "sandbox_id box-1 already exists", sandbox,
			&rawclient.SandboxConflictError{SandboxID: "box-1"}, "sandbox_id box-1 already exists"},
		{"SANDBOX_CONFLICT", codes.Aborted, "busy", sandbox,
			&rawclient.SandboxConflictError{SandboxID: "box-1"}, "busy"},
		{"EXEC_ID_ALREADY_EXISTS", codes.AlreadyExists, "exec_id exec-1 already exists", exec,
			&rawclient.SandboxConflictError{ExecID: "exec-1"}, "exec_id exec-1 already exists"},
		{"SANDBOX_NOT_READY", codes.FailedPrecondition, "sandbox box-1 is not ready", sandbox,
			&rawclient.SandboxNotReadyError{SandboxID: "box-1"}, "Sandbox box-1 is not ready."},
		{"SANDBOX_NOT_READY", codes.FailedPrecondition, "sandbox box-1 is stopped; resume it", sandbox,
			&rawclient.SandboxNotReadyError{SandboxID: "box-1"}, "sandbox box-1 is stopped; resume it"},
		{"SANDBOX_INVALID_STATE", codes.FailedPrecondition, "sandbox box-1 is not stopped", sandbox,
			&rawclient.SandboxInvalidStateError{}, "sandbox box-1 is not stopped"},
		{"EXEC_NOT_FOUND", codes.NotFound, "exec exec-1 was not found", exec,
			&rawclient.ExecNotFoundError{ExecID: "exec-1"}, "Exec exec-1 not found."},
		{"EXEC_ALREADY_TERMINAL", codes.FailedPrecondition, "exec exec-1 is already terminal", exec,
			&rawclient.ExecAlreadyTerminalError{ExecID: "exec-1"}, "Exec exec-1 is already terminal."},
		{"EXEC_NOT_RUNNING", codes.FailedPrecondition, "x", exec,
			&rawclient.ExecNotRunningError{ExecID: "exec-1"}, "Exec exec-1 is not running."},
		{"SANDBOX_EVENT_SEQUENCE_EXPIRED", codes.OutOfRange, "sandbox box-1 event sequence 7 is outside retained history",
			map[string]string{"sandbox_id": "box-1", "from_sequence": "7"},
			&rawclient.SandboxSequenceExpiredError{SandboxID: "box-1", FromSequence: &seven},
			"sandbox box-1 event sequence 7 is outside retained history"},
		{"SANDBOX_EVENT_SEQUENCE_EXPIRED", codes.OutOfRange, "x",
			map[string]string{"from_sequence": "not a number", "oldest_sequence": "7"},
			&rawclient.SandboxSequenceExpiredError{OldestSequence: &seven}, "x"},
		{"A_REASON_OF_A_NEWER_DAEMON", codes.Internal, "new", map[string]string{"key": "value"},
			&rawclient.SandboxClientError{}, "new"},
		{"ENGINE_UNAVAILABLE", codes.Unavailable, "the engine is unreachable", nil,
			&rawclient.SandboxClientError{}, "the engine is unreachable"},
	} {
		// Which domain it is of does not matter.
		for _, domain := range []string{"agents-sandbox", "another"} {
			client := open(t, serve(t, refusing{err: refusal(t, test.code, test.sent, domain, test.reason, test.metadata)}))
			_, unary := client.GetSandbox(t.Context(), "box-1")
			stream, err := client.SubscribeSandboxEvents(t.Context(), "box-1", 0, false)
			if err != nil {
				t.Fatal(err)
			}
			_, streamed := stream.Recv()
			for _, err := range []error{unary, streamed} {
				if reflect.TypeOf(err) != reflect.TypeOf(test.want) {
					t.Fatalf("%s: %T, want %T", test.reason, err, test.want)
				}
				if err.Error() != test.message {
					t.Errorf("%s: %q, want %q", test.reason, err, test.message)
				}
				checkFields(t, err, test.want)
				var base *rawclient.SandboxClientError
				if !errors.As(err, &base) {
					t.Fatalf("%s: has no base", test.reason)
				}
				if base.Reason() != test.reason || base.Code() != test.code || !maps.Equal(base.Metadata(), test.metadata) {
					t.Errorf("%s: %s %s %v", test.reason, base.Reason(), base.Code(), base.Metadata())
				}
				if status.Code(errors.Unwrap(base)) != test.code {
					t.Errorf("%s: the cause is %v", test.reason, errors.Unwrap(base))
				}
			}
		}
	}
}

// checkFields compares all fields but the embedded base.
func checkFields(t *testing.T, found, want any) {
	t.Helper()
	f, w := reflect.ValueOf(found).Elem(), reflect.ValueOf(want).Elem()
	for i := range w.NumField() {
		if field := w.Type().Field(i); !field.Anonymous && field.IsExported() &&
			!reflect.DeepEqual(f.Field(i).Interface(), w.Field(i).Interface()) {
			t.Errorf("%T.%s is %v, want %v", found, field.Name, f.Field(i), w.Field(i))
		}
	}
}

func TestANotRunningExecIsAlsoAnInvalidState(t *testing.T) {
	err := error(rawclient.NewExecNotRunningError("exec-1", io.EOF))
	var invalid *rawclient.SandboxInvalidStateError
	var base *rawclient.SandboxClientError
	if !errors.As(err, &invalid) || !errors.As(err, &base) || !errors.Is(err, io.EOF) {
		t.Errorf("%#v", err)
	}
	if err.Error() != "Exec exec-1 is not running." {
		t.Error(err)
	}
}

func TestAnErrorWithoutDetailsHasNoReason(t *testing.T) {
	client := open(t, serve(t, refusing{err: status.Error(codes.InvalidArgument, "create_spec is required")}))
	_, err := client.GetSandbox(t.Context(), "box-1")
	var base *rawclient.SandboxClientError
	if !errors.As(err, &base) || base.Reason() != "" || base.Code() != codes.InvalidArgument ||
		err.Error() != "create_spec is required" {
		t.Errorf("%#v", err)
	}
}

// hanging never answers.
type hanging struct {
	agboxv1.UnimplementedSandboxServiceServer
}

func (hanging) Ping(ctx context.Context, _ *agboxv1.PingRequest) (*agboxv1.PingResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (hanging) SubscribeSandboxEvents(
	_ *agboxv1.SubscribeSandboxEventsRequest, stream agboxv1.SandboxService_SubscribeSandboxEventsServer,
) error {
	if err := stream.Send(&agboxv1.SandboxEvent{Sequence: 1}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return stream.Context().Err()
}

func TestADaemonThatHangsIsAnErrorWithinTheDeadline(t *testing.T) {
	client := open(t, serve(t, hanging{}), rawclient.WithTimeout(50*time.Millisecond))
	_, err := client.Ping(t.Context())
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "did not answer in time") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := client.Ping(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// The deadline of a call does not end a stream: it is still open when a later call has exceeded its own.
func TestAStreamHasNoDeadlineOfCalls(t *testing.T) {
	client := open(t, serve(t, hanging{}), rawclient.WithTimeout(50*time.Millisecond))
	stream, err := client.SubscribeSandboxEvents(t.Context(), "box-1", 0, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Ping(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		_, err := stream.Recv()
		ended <- err
	}()
	select {
	case err := <-ended:
		t.Fatalf("the stream has ended: %v", err)
	default:
	}
	if err := stream.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestADaemonThatCannotBeReachedSaysWhy(t *testing.T) {
	directory := t.TempDir()
	notListening := filepath.Join(directory, "stale.sock")
	listener, err := net.Listen("unix", notListening)
	if err != nil {
		t.Fatal(err)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(directory, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for socket, words := range map[string]string{
		filepath.Join(directory, "none.sock"): "does not exist; start it with",
		notListening:                          "no process listens on " + notListening,
		file:                                  "no process listens on",
		filepath.Join(file, "below.sock"):     "cannot connect to agboxd",
		filepath.Join(directory, strings.Repeat("x", 99)): "is too long",
	} {
		client := open(t, socket)
		_, err := client.Ping(t.Context()) // within its deadline: otherwise that would be the error
		var unreachable *rawclient.DaemonUnreachableError
		if !errors.As(err, &unreachable) || unreachable.SocketPath != socket || unreachable.WasSent {
			t.Fatalf("%s: %#v", socket, err)
		}
		if !strings.Contains(err.Error(), words) {
			t.Errorf("%q has no %q", err, words)
		}
		if unreachable.Code() != codes.Unavailable {
			t.Error(unreachable.Code())
		}
	}
}

func TestADaemonThatClosesTheConnectionIsUnreachable(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "agboxd.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_ = connection.Close()
		}
	}()
	_, err = open(t, socket).Ping(t.Context())
	var unreachable *rawclient.DaemonUnreachableError
	if !errors.As(err, &unreachable) || !strings.Contains(err.Error(), "lost the connection to agboxd") {
		t.Errorf("%v", err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/1996fanrui/agents-sandbox/api/generated/agboxv1"
	"github.com/1996fanrui/agents-sandbox/sdk/go/client"
	"github.com/1996fanrui/agents-sandbox/sdk/go/rawclient"
)

// What programs rely on that were written for the existing SDK: these compile only if names and types are the same.

type rawSurface interface {
	Ping(context.Context) (*agboxv1.PingResponse, error)
	CreateSandbox(context.Context, *agboxv1.CreateSandboxRequest) (*agboxv1.CreateSandboxResponse, error)
	GetSandbox(context.Context, string) (*agboxv1.GetSandboxResponse, error)
	ListSandboxes(context.Context, *agboxv1.ListSandboxesRequest) (*agboxv1.ListSandboxesResponse, error)
	ResumeSandbox(context.Context, string) (*agboxv1.AcceptedResponse, error)
	StopSandbox(context.Context, string) (*agboxv1.AcceptedResponse, error)
	DeleteSandbox(context.Context, string) (*agboxv1.AcceptedResponse, error)
	DeleteSandboxes(context.Context, *agboxv1.DeleteSandboxesRequest) (*agboxv1.DeleteSandboxesResponse, error)
	SubscribeSandboxEvents(context.Context, string, uint64, bool) (rawclient.SandboxEventStream, error)
	CreateExec(context.Context, *agboxv1.CreateExecRequest) (*agboxv1.CreateExecResponse, error)
	CancelExec(context.Context, string) (*agboxv1.AcceptedResponse, error)
	GetExec(context.Context, string) (*agboxv1.GetExecResponse, error)
	ListActiveExecs(context.Context, string) (*agboxv1.ListActiveExecsResponse, error)
	Close() error
}

type clientSurface interface {
	Ping(context.Context) (client.PingInfo, error)
	CreateSandbox(context.Context, ...client.CreateSandboxOption) (client.SandboxHandle, error)
	GetSandbox(context.Context, string) (client.SandboxHandle, error)
	ListSandboxes(context.Context, ...client.ListSandboxesOption) ([]client.SandboxHandle, error)
	ResumeSandbox(context.Context, string, ...client.WaitOption) (client.SandboxHandle, error)
	StopSandbox(context.Context, string, ...client.WaitOption) (client.SandboxHandle, error)
	DeleteSandbox(context.Context, string, ...client.WaitOption) (client.SandboxHandle, error)
	DeleteSandboxes(context.Context, map[string]string, ...client.WaitOption) (client.DeleteSandboxesResult, error)
	CreateExec(context.Context, string, []string, ...client.CreateExecOption) (client.ExecHandle, error)
	Run(context.Context, string, []string, ...client.RunOption) (client.ExecHandle, error)
	CancelExec(context.Context, string, ...client.WaitOption) (client.ExecHandle, error)
	GetExec(context.Context, string) (client.ExecHandle, error)
	ListActiveExecs(context.Context, ...client.ListActiveExecsOption) ([]client.ExecHandle, error)
	SubscribeSandboxEvents(context.Context, string, ...client.SubscribeOption) <-chan client.EventOrError
	Close() error
}

type stream interface {
	Recv() (*agboxv1.SandboxEvent, error)
	Close() error
}

var (
	_ rawSurface    = (*rawclient.RawClient)(nil)
	_ clientSurface = (*client.Client)(nil)
	_ stream        = rawclient.SandboxEventStream(nil)

	_ func() (string, error)                                              = rawclient.DefaultSocketPath
	_ func(string, ...grpc.DialOption) (*grpc.ClientConn, error)          = rawclient.Dial
	_ func(string, ...rawclient.CallOption) (*rawclient.RawClient, error) = rawclient.New
	_ func(time.Duration) rawclient.CallOption                            = rawclient.WithTimeout
	_ func(...grpc.DialOption) rawclient.CallOption                       = rawclient.WithDialOptions
	_ func(string, error) *rawclient.SandboxClientError                   = rawclient.NewSandboxClientError
	_ func(string, error) *rawclient.ExecNotRunningError                  = rawclient.NewExecNotRunningError

	_ func(...client.Option) (*client.Client, error) = client.New
	_ func(time.Duration) client.Option              = client.WithTimeout
	_ func(time.Duration) client.Option              = client.WithStreamTimeout
	_ func(time.Duration) client.Option              = client.WithOperationTimeout
	_ func(string) client.Option                     = client.WithSocketPath
	_ func(...grpc.DialOption) client.Option         = client.WithDialOptions

	_ = []client.CreateSandboxOption{
		client.WithImage("debian:12"),
		client.WithConfigYAML([]byte("image: debian:12")),
		client.WithSandboxID("box-1"),
		client.WithMounts(client.MountSpec{Source: "/a", Target: "/b", Writable: true}),
		client.WithCopies(client.CopySpec{Source: "/a", Target: "/b", ExcludePatterns: []string{"*.o"}}),
		client.WithPorts(client.PortMapping{ContainerPort: 80, HostPort: 8080, Protocol: "tcp"}),
		client.WithCommand("sleep", "1"),
		client.WithBuiltinTools("git"),
		client.WithCompanionContainers(client.CompanionContainerSpec{
			Name: "db", Image: "postgres", Envs: map[string]string{"A": "b"},
			Healthcheck: &client.HealthcheckConfig{
				Test: []string{"CMD", "true"}, Interval: new(time.Duration), Timeout: new(time.Duration), Retries: new(uint32),
				StartPeriod: new(time.Duration), StartInterval: new(time.Duration),
			},
			Command: []string{"postgres"}, PostStartOnPrimary: []string{"true"},
			CPULimit: "1", MemoryLimit: "1g", DiskLimit: "1g",
		}),
		client.WithEnvs(map[string]string{"A": "b"}),
		client.WithLabels(map[string]string{"a": "b"}),
		client.WithIdleTTL(time.Minute),
		client.WithCPULimit("2"),
		client.WithMemoryLimit("512m"),
		client.WithPrimaryDiskLimit("10g"),
		client.WithGPUs("all"),
		client.WithWait(false),
	}
	_ = []client.ListSandboxesOption{
		client.WithIncludeDeleted(true), client.WithLabelSelector(map[string]string{"a": "b"}),
	}
	_ = []client.WaitOption{client.WithWait(true)}
	_ = []client.CreateExecOption{
		client.WithExecID("exec-1"), client.WithCwd("/"), client.WithEnvOverrides(map[string]string{"A": "b"}),
		client.WithWait(true),
	}
	_ = []client.RunOption{client.WithCwd("/"), client.WithEnvOverrides(nil)}
	_ = []client.ListActiveExecsOption{client.WithSandboxID("box-1")}
	_ = []client.SubscribeOption{client.WithFromSequence(1), client.WithIncludeCurrentSnapshot(true)}

	text                      = new(string)
	_    client.SandboxHandle = client.SandboxHandle{
		SandboxID: "", State: client.SandboxStateReady, LastEventSequence: uint64(1),
		CompanionContainers: []client.CompanionContainerSpec{}, Labels: map[string]string{}, CreatedAt: time.Time{},
		Image: "", ErrorCode: text, ErrorMessage: text, StateChangedAt: &time.Time{},
	}
	_ = client.ExecHandle{
		ExecID: "", SandboxID: "", State: client.ExecStateRunning, Command: []string{}, Cwd: "",
		EnvOverrides: map[string]string{}, ExitCode: new(int32), Error: text, LastEventSequence: uint64(1),
		StdoutLogPath: text, StderrLogPath: text,
	}
	_ = client.EventOrError{Err: error(nil), Event: &client.SandboxEvent{
		EventID: "", Sequence: uint64(1), SandboxID: "", EventType: client.SandboxEventTypeSandboxReady,
		OccurredAt: time.Time{}, Replay: false, Snapshot: false, SandboxState: new(client.SandboxState),
		SandboxPhase:       &client.SandboxPhaseDetails{Phase: text, ErrorCode: text, ErrorMessage: text, Reason: text},
		Exec:               &client.ExecEventDetails{ExitCode: new(int32), ExecState: new(client.ExecState), ErrorCode: text, ErrorMessage: text},
		CompanionContainer: &client.CompanionContainerEventDetails{Name: "", ErrorCode: text, ErrorMessage: text},
	}}
	_ = client.DeleteSandboxesResult{DeletedSandboxIDs: []string{}, DeletedCount: uint32(0)}
	_ = client.PingInfo{Version: "", Daemon: ""}
)

func TestErrorsAreAliases(t *testing.T) {
	for _, pair := range [][2]any{
		{client.SandboxClientError{}, rawclient.SandboxClientError{}},
		{client.SandboxConflictError{SandboxID: ""}, rawclient.SandboxConflictError{}},
		{client.SandboxNotFoundError{SandboxID: ""}, rawclient.SandboxNotFoundError{}},
		{client.SandboxNotReadyError{SandboxID: ""}, rawclient.SandboxNotReadyError{}},
		{client.SandboxInvalidStateError{}, rawclient.SandboxInvalidStateError{}},
		{client.ExecNotFoundError{ExecID: ""}, rawclient.ExecNotFoundError{}},
		{client.ExecAlreadyTerminalError{ExecID: ""}, rawclient.ExecAlreadyTerminalError{}},
		{client.ExecNotRunningError{ExecID: ""}, rawclient.ExecNotRunningError{}},
		{
			client.SandboxSequenceExpiredError{SandboxID: "", FromSequence: new(uint64), OldestSequence: new(uint64)},
			rawclient.SandboxSequenceExpiredError{},
		},
	} {
		if reflect.TypeOf(pair[0]) != reflect.TypeOf(pair[1]) {
			t.Errorf("%T is not %T", pair[0], pair[1])
		}
	}
}

func TestConstantsAreTheNumbersOfTheAPI(t *testing.T) {
	for number, name := range agboxv1.SandboxState_name {
		if short := client.SandboxState(number).String(); number != 0 && "SANDBOX_STATE_"+short != name {
			t.Errorf("%d is %s, want %s", number, short, name)
		}
	}
	for number, name := range agboxv1.ExecState_name {
		if short := client.ExecState(number).String(); number != 0 && "EXEC_STATE_"+short != name {
			t.Errorf("%d is %s, want %s", number, short, name)
		}
	}
	for constant, name := range map[client.SandboxEventType]string{
		client.SandboxEventTypeUnspecified:              "EVENT_TYPE_UNSPECIFIED",
		client.SandboxEventTypeSandboxAccepted:          "SANDBOX_ACCEPTED",
		client.SandboxEventTypeSandboxPreparing:         "SANDBOX_PREPARING",
		client.SandboxEventTypeSandboxReady:             "SANDBOX_READY",
		client.SandboxEventTypeSandboxFailed:            "SANDBOX_FAILED",
		client.SandboxEventTypeSandboxStopRequested:     "SANDBOX_STOP_REQUESTED",
		client.SandboxEventTypeSandboxStopped:           "SANDBOX_STOPPED",
		client.SandboxEventTypeSandboxDeleteRequested:   "SANDBOX_DELETE_REQUESTED",
		client.SandboxEventTypeSandboxDeleted:           "SANDBOX_DELETED",
		client.SandboxEventTypeExecStarted:              "EXEC_STARTED",
		client.SandboxEventTypeExecFinished:             "EXEC_FINISHED",
		client.SandboxEventTypeExecFailed:               "EXEC_FAILED",
		client.SandboxEventTypeExecCancelled:            "EXEC_CANCELLED",
		client.SandboxEventTypeCompanionContainerReady:  "COMPANION_CONTAINER_READY",
		client.SandboxEventTypeCompanionContainerFailed: "COMPANION_CONTAINER_FAILED",
	} {
		if int32(constant) != agboxv1.EventType_value[name] {
			t.Errorf("%s is %d", name, constant)
		}
	}
	if !client.ExecStateCancelled.IsTerminal() || client.ExecStateRunning.IsTerminal() {
		t.Error("IsTerminal")
	}
}

func TestOptionsThatCannotBeMeantAreRefused(t *testing.T) {
	c, err := client.New(client.WithSocketPath(t.TempDir() + "/none.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	image := client.WithImage("debian:12")
	for name, options := range map[string][]client.CreateSandboxOption{
		"no image":          nil,
		"empty image":       {client.WithImage("")},
		"empty YAML":        {client.WithConfigYAML(nil)},
		"empty ID":          {image, client.WithSandboxID("")},
		"empty command":     {image, client.WithCommand()},
		"empty argument":    {image, client.WithCommand("sh", "")},
		"negative idle":     {image, client.WithIdleTTL(-1)},
		"unknown protocol":  {image, client.WithPorts(client.PortMapping{Protocol: "icmp"})},
		"empty companion":   {image, client.WithCompanionContainers(client.CompanionContainerSpec{Command: []string{}})},
		"companion's token": {image, client.WithRequiredServices(client.CompanionContainerSpec{Command: []string{""}})},
	} {
		_, err := c.CreateSandbox(t.Context(), options...)
		if unreachable := (*client.DaemonUnreachableError)(nil); err == nil || errors.As(err, &unreachable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := c.CreateExec(t.Context(), "box-1", []string{"true"}, client.WithExecID("")); err == nil {
		t.Error("an empty exec ID")
	}
}

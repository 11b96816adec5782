// SPDX-License-Identifier: Apache-2.0

// Package client runs commands in sandboxes of the agents-sandbox daemon of this user.
//
//	c, err := client.New()
//	...
//	box, err := c.Create(ctx, client.WithImage("debian:12"))
//	...
//	defer box.Delete(context.WithoutCancel(ctx))
//	result, err := box.Run(ctx, "make", "test")
//
// Create, Sandbox and Exec are the short way. The methods that take IDs and return handles are the layer below it. All
// waits follow events, without polling, and survive restarts of the daemon.
package client

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/1996fanrui/agents-sandbox/api/generated/agboxv1"
	"github.com/1996fanrui/agents-sandbox/sdk/go/rawclient"
)

const (
	defaultTimeout          = 5 * time.Second
	defaultOperationTimeout = 60 * time.Second
	defaultReconnectTimeout = 30 * time.Second
)

// A Client calls one daemon. It is safe for concurrent use.
type Client struct {
	raw              *rawclient.RawClient
	streamTimeout    time.Duration
	operationTimeout time.Duration
	reconnectTimeout time.Duration
}

// An Option configures a Client.
type Option func(*options)

type options struct {
	timeout, streamTimeout, operationTimeout, reconnectTimeout time.Duration
	socketPath                                                 string
	dialOptions                                                []grpc.DialOption
}

// WithTimeout limits each single call whose context has no deadline. The default is 5 seconds; 0 means no limit.
func WithTimeout(limit time.Duration) Option {
	return func(o *options) { o.timeout = limit }
}

// WithStreamTimeout limits how long SubscribeSandboxEvents delivers events, if its context has no deadline. By default
// it is not limited.
func WithStreamTimeout(limit time.Duration) Option {
	return func(o *options) { o.streamTimeout = limit }
}

// WithOperationTimeout limits the wait of methods that take IDs and wait, such as CreateSandbox and Run, if their
// context has no deadline. The default is 60 seconds; 0 means no limit. When it has passed, the operation itself goes
// on. Methods of Sandbox and Exec are limited by their context only.
func WithOperationTimeout(limit time.Duration) Option {
	return func(o *options) { o.operationTimeout = limit }
}

// WithReconnectTimeout limits how long a wait or a stream goes on trying when the daemon cannot be reached any more.
// The default is 30 seconds, longer than a restart.
func WithReconnectTimeout(limit time.Duration) Option {
	return func(o *options) { o.reconnectTimeout = limit }
}

// WithSocketPath selects the daemon; the default is that of this user.
func WithSocketPath(path string) Option {
	return func(o *options) { o.socketPath = path }
}

// WithDialOptions adds options of the gRPC connection.
func WithDialOptions(dialOptions ...grpc.DialOption) Option {
	return func(o *options) { o.dialOptions = append(o.dialOptions, dialOptions...) }
}

// New returns a client. It connects with the first call.
func New(opts ...Option) (*Client, error) {
	chosen := options{
		timeout:          defaultTimeout,
		operationTimeout: defaultOperationTimeout,
		reconnectTimeout: defaultReconnectTimeout,
	}
	for _, option := range opts {
		option(&chosen)
	}
	if chosen.socketPath == "" {
		path, err := rawclient.DefaultSocketPath()
		if err != nil {
			return nil, rawclient.NewSandboxClientError(err.Error(), err)
		}
		chosen.socketPath = path
	}
	raw, err := rawclient.New(chosen.socketPath,
		rawclient.WithTimeout(chosen.timeout), rawclient.WithDialOptions(chosen.dialOptions...))
	if err != nil {
		return nil, err
	}
	return &Client{
		raw:              raw,
		streamTimeout:    chosen.streamTimeout,
		operationTimeout: chosen.operationTimeout,
		reconnectTimeout: chosen.reconnectTimeout,
	}, nil
}

// Raw returns the layer below, for calls that this one does not have.
func (c *Client) Raw() *rawclient.RawClient { return c.raw }

// Close ends the connection. Sandboxes and execs go on.
func (c *Client) Close() error { return c.raw.Close() }

// Ping returns the version of the daemon.
func (c *Client) Ping(ctx context.Context) (PingInfo, error) {
	response, err := c.raw.Ping(ctx)
	if err != nil {
		return PingInfo{}, err
	}
	return PingInfo{Version: response.GetVersion(), Daemon: response.GetDaemon()}, nil
}

// CreateSandbox creates a sandbox, and waits until it is ready unless WithWait(false) is given. It needs WithImage or
// WithConfigYAML.
func (c *Client) CreateSandbox(ctx context.Context, opts ...CreateSandboxOption) (SandboxHandle, error) {
	request, err := newCreateSandbox(opts)
	if err != nil {
		return SandboxHandle{}, err
	}
	ctx, cancel := limited(ctx, c.operationTimeout)
	defer cancel()
	created, err := c.createSandbox(ctx, request.message)
	if err != nil {
		return SandboxHandle{}, err
	}
	if !request.wait {
		return toSandboxHandle(created)
	}
	return c.waitForSandbox(ctx, created, SandboxStateReady, "create_sandbox")
}

// GetSandbox also returns deleted sandboxes, until their history is purged.
func (c *Client) GetSandbox(ctx context.Context, sandboxID string) (SandboxHandle, error) {
	response, err := c.raw.GetSandbox(ctx, sandboxID)
	if err != nil {
		return SandboxHandle{}, err
	}
	return toSandboxHandle(response.GetSandbox())
}

// ListSandboxes returns the newest first.
func (c *Client) ListSandboxes(ctx context.Context, opts ...ListSandboxesOption) ([]SandboxHandle, error) {
	request := &agboxv1.ListSandboxesRequest{}
	for _, option := range opts {
		option.applyListSandboxes(request)
	}
	found := []SandboxHandle{}
	for {
		response, err := c.raw.ListSandboxes(ctx, request)
		if err != nil {
			return nil, err
		}
		for _, sandbox := range response.GetSandboxes() {
			handle, err := toSandboxHandle(sandbox)
			if err != nil {
				return nil, err
			}
			found = append(found, handle)
		}
		if request.PageToken = response.GetNextPageToken(); request.PageToken == "" {
			return found, nil
		}
	}
}

// ResumeSandbox starts a stopped sandbox again, and waits until it is ready unless WithWait(false) is given.
func (c *Client) ResumeSandbox(ctx context.Context, sandboxID string, opts ...WaitOption) (SandboxHandle, error) {
	return c.move(ctx, sandboxID, c.raw.ResumeSandbox, SandboxStateReady, "resume_sandbox", opts)
}

// StopSandbox stops a sandbox, and waits until it is stopped unless WithWait(false) is given.
func (c *Client) StopSandbox(ctx context.Context, sandboxID string, opts ...WaitOption) (SandboxHandle, error) {
	return c.move(ctx, sandboxID, c.raw.StopSandbox, SandboxStateStopped, "stop_sandbox", opts)
}

// DeleteSandbox deletes a sandbox, and waits until it is deleted unless WithWait(false) is given.
func (c *Client) DeleteSandbox(ctx context.Context, sandboxID string, opts ...WaitOption) (SandboxHandle, error) {
	return c.move(ctx, sandboxID, c.raw.DeleteSandbox, SandboxStateDeleted, "delete_sandbox", opts)
}

type operation func(context.Context, string) (*agboxv1.AcceptedResponse, error)

func (c *Client) move(
	ctx context.Context, sandboxID string, begin operation, goal SandboxState, name string, opts []WaitOption,
) (SandboxHandle, error) {
	ctx, cancel := limited(ctx, c.operationTimeout)
	defer cancel()
	if _, err := begin(ctx, sandboxID); err != nil {
		return SandboxHandle{}, err
	}
	now, err := c.getSandbox(ctx, sandboxID)
	if err != nil {
		return SandboxHandle{}, err
	}
	if !waits(opts) {
		return toSandboxHandle(now)
	}
	return c.waitForSandbox(ctx, now, goal, name)
}

// DeleteSandboxes deletes all sandboxes with these labels, and waits until they are deleted unless WithWait(false) is
// given.
func (c *Client) DeleteSandboxes(
	ctx context.Context, labelSelector map[string]string, opts ...WaitOption,
) (DeleteSandboxesResult, error) {
	ctx, cancel := limited(ctx, c.operationTimeout)
	defer cancel()
	request := &agboxv1.DeleteSandboxesRequest{LabelSelector: maps.Clone(labelSelector)}
	response, err := c.raw.DeleteSandboxes(ctx, request)
	if err != nil {
		return DeleteSandboxesResult{}, err
	}
	result := DeleteSandboxesResult{response.GetDeletedSandboxIds(), response.GetDeletedCount()}
	if !waits(opts) {
		return result, nil
	}
	// They are being deleted concurrently: the last one is awaited the longest, whatever their order.
	for _, sandboxID := range result.DeletedSandboxIDs {
		now, err := c.getSandbox(ctx, sandboxID)
		if err == nil {
			_, err = c.waitForSandbox(ctx, now, SandboxStateDeleted, "delete_sandboxes")
		}
		if notFound := (*SandboxNotFoundError)(nil); err != nil && !errors.As(err, &notFound) {
			return result, err
		}
	}
	return result, nil
}

// CreateExec starts a command in a sandbox. It waits until the command has ended only with WithWait(true).
func (c *Client) CreateExec(
	ctx context.Context, sandboxID string, command []string, opts ...CreateExecOption,
) (ExecHandle, error) {
	request := createExec{message: &agboxv1.CreateExecRequest{
		SandboxId: sandboxID, Command: slices.Clone(command), Cwd: defaultCwd,
	}}
	for _, option := range opts {
		if err := option.applyCreateExec(&request); err != nil {
			return ExecHandle{}, err
		}
	}
	ctx, cancel := limited(ctx, c.operationTimeout)
	defer cancel()
	created, err := c.createExec(ctx, request.message)
	if err != nil {
		return ExecHandle{}, err
	}
	exec, err := c.execSnapshot(ctx, created.GetExecId())
	if err == nil && request.wait {
		exec, err = c.waitForExec(ctx, exec, "create_exec")
	}
	if err != nil {
		return ExecHandle{}, err
	}
	exec.StdoutLogPath, exec.StderrLogPath = present(created.GetStdoutLogPath()), present(created.GetStderrLogPath())
	return exec, nil
}

// Run starts a command in a sandbox and waits until it has ended. The handle names the files with its output;
// Sandbox.Run returns the output itself.
func (c *Client) Run(
	ctx context.Context, sandboxID string, command []string, opts ...RunOption,
) (ExecHandle, error) {
	all := []CreateExecOption{WithWait(true)}
	for _, option := range opts {
		all = append(all, option)
	}
	return c.CreateExec(ctx, sandboxID, command, all...)
}

// CancelExec ends all processes of an exec, and waits until they are gone unless WithWait(false) is given.
func (c *Client) CancelExec(ctx context.Context, execID string, opts ...WaitOption) (ExecHandle, error) {
	ctx, cancel := limited(ctx, c.operationTimeout)
	defer cancel()
	if _, err := c.raw.CancelExec(ctx, execID); err != nil {
		if invalid := (*SandboxInvalidStateError)(nil); errors.As(err, &invalid) {
			return ExecHandle{}, rawclient.NewExecNotRunningError(execID, err)
		}
		return ExecHandle{}, err
	}
	exec, err := c.execSnapshot(ctx, execID)
	if err != nil || !waits(opts) {
		return exec, err
	}
	return c.waitForExec(ctx, exec, "cancel_exec")
}

// GetExec returns the state of an exec.
func (c *Client) GetExec(ctx context.Context, execID string) (ExecHandle, error) {
	response, err := c.raw.GetExec(ctx, execID)
	if err != nil {
		return ExecHandle{}, err
	}
	return toExecSnapshot(response)
}

// ListActiveExecs returns the running execs of all sandboxes, or of one: WithSandboxID.
func (c *Client) ListActiveExecs(ctx context.Context, opts ...ListActiveExecsOption) ([]ExecHandle, error) {
	request := &agboxv1.ListActiveExecsRequest{}
	for _, option := range opts {
		option.applyListActiveExecs(request)
	}
	found := []ExecHandle{}
	for {
		response, err := c.raw.ListActiveExecsPage(ctx, request)
		if err != nil {
			return nil, err
		}
		for _, exec := range response.GetExecs() {
			found = append(found, toExecHandle(exec))
		}
		if request.PageToken = response.GetNextPageToken(); request.PageToken == "" {
			return found, nil
		}
	}
}

// SubscribeSandboxEvents delivers the events of a sandbox, in order and each once, also across restarts of the daemon.
// The channel is closed when the context is done, after an error, or when the history of the sandbox is purged.
func (c *Client) SubscribeSandboxEvents(
	ctx context.Context, sandboxID string, opts ...SubscribeOption,
) <-chan EventOrError {
	events := make(chan EventOrError)
	go func() {
		defer close(events)
		limit, cancel := limited(ctx, c.streamTimeout)
		defer cancel()
		for event, err := range c.events(limit, sandboxID, opts...) {
			next := EventOrError{Event: &event}
			if err != nil {
				if ctx.Err() != nil {
					return
				}
				next = EventOrError{Err: err}
			}
			select {
			case events <- next:
			case <-ctx.Done():
				return
			}
		}
	}()
	return events
}

// limited gives a context without a deadline one, unless the limit is 0.
func limited(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if _, isLimited := ctx.Deadline(); isLimited || limit <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, limit)
}

// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/1996fanrui/agents-sandbox/api/generated/agboxv1"
)

// A Command says what to run in a sandbox, and how.
type Command struct {
	Args []string
	// The working directory; empty means /workspace.
	Dir string
	// Added to the environment of the sandbox, or replacing variables of it.
	Env map[string]string
	// A name or uid of the container, optionally with ":group"; empty means agbox.
	User string
	// The ID of the exec; empty means a new one. With a new one, the command runs exactly once even if the daemon is
	// restarted in between; with one of the caller, the request is sent once.
	ExecID string
	// How long the command may run, from its acceptance on, also if this program ends before; 0 means no limit. Then it
	// is ended, with the state CANCELLED and the error code TIMEOUT.
	Timeout time.Duration
	// What its stdin reads, up to the end. When the command has ended, a read that has begun is not interrupted. Nil means
	// nothing; with Start, what Exec.Attach writes if HasStdin is set.
	Stdin    io.Reader
	HasStdin bool
	// It runs in a terminal, whose output is its stdout; nil means no terminal.
	Terminal *Terminal

	// Of RunCommand: what takes the output. If nil, it is in the Result, up to MaxOutput bytes of each; 0 means 64 MiB.
	Stdout, Stderr io.Writer
	MaxOutput      int
}

// A Terminal is that of a command.
type Terminal struct {
	Rows, Columns uint32 // 0: 24 rows of 80 columns
	Term          string // TERM of its environment; empty means xterm
}

// defaultMaxOutput bounds what a command of a sandbox, which is not trusted, makes this program keep in memory.
const defaultMaxOutput = 64 << 20

// A Result says how a command ended.
type Result struct {
	ExecID   string
	State    ExecState
	ExitCode int
	// Why it failed: for programs, such as TIMEOUT, and for people.
	ErrorCode, Error string
	// Of RunCommand, unless the Command has writers for them.
	Stdout, Stderr []byte
	// Stdout or Stderr lacks what was beyond MaxOutput, or beyond the daemon's limit for an exec.
	IsTruncated bool
	// All that the daemon knows of the exec.
	Status *agboxv1.ExecStatus
}

// Err returns nil if the command ended with exit code 0, and otherwise an *ExitError.
func (r *Result) Err() error {
	if r.State == ExecStateFinished && r.ExitCode == 0 {
		return nil
	}
	return &ExitError{r}
}

// An ExitError reports that a command did not end with exit code 0.
type ExitError struct{ *Result }

func (e *ExitError) Error() string {
	if e.Result.Error != "" {
		return fmt.Sprintf("exec %s: %s", e.ExecID, e.Result.Error)
	}
	return fmt.Sprintf("exec %s: %s", e.ExecID, e.State)
}

func toResult(exec *agboxv1.ExecStatus) *Result {
	return &Result{
		ExecID:      exec.GetExecId(),
		State:       ExecState(exec.GetState()),
		ExitCode:    int(exec.GetExitCode()),
		ErrorCode:   exec.GetErrorCode(),
		Error:       exec.GetError(),
		IsTruncated: exec.GetOutputTruncated(),
		Status:      exec,
	}
}

// Run runs a command and returns how it ended, with its output. Any exit code is a result, not an error: see
// Result.Err. If the context is done before, the command is cancelled.
func (s *Sandbox) Run(ctx context.Context, args ...string) (*Result, error) {
	return s.RunCommand(ctx, Command{Args: args})
}

// RunCommand is Run with more options.
func (s *Sandbox) RunCommand(ctx context.Context, command Command) (*Result, error) {
	exec, err := s.Start(ctx, command)
	if err != nil {
		return nil, err
	}
	limit := command.MaxOutput
	if limit == 0 {
		limit = defaultMaxOutput
	}
	stdout, stderr := &keptOutput{limit: limit}, &keptOutput{limit: limit}
	start := uint64(0)
	options := AttachOptions{
		Stdout: command.Stdout, Stderr: command.Stderr, StdoutOffset: &start, StderrOffset: &start,
		ReadOnly: command.Stdin == nil,
	}
	if options.Stdout == nil {
		options.Stdout = stdout
	}
	if options.Stderr == nil {
		options.Stderr = stderr
	}
	session := exec.Attach(ctx, options)
	if command.Stdin != nil {
		go session.send(command.Stdin)
	}
	result, err := session.Wait()
	if err != nil {
		return nil, errors.Join(err, exec.abandon(ctx))
	}
	result.Stdout, result.Stderr = stdout.kept.Bytes(), stderr.kept.Bytes()
	result.IsTruncated = result.IsTruncated || stdout.isTruncated || stderr.isTruncated
	return result, nil
}

// Start starts a command and returns at once. The context limits the start, not the command; if it is done before the
// start is confirmed, the command is cancelled. Stdout, Stderr and Stdin of the command are not used: see Exec.
func (s *Sandbox) Start(ctx context.Context, command Command) (*Exec, error) {
	request := &agboxv1.CreateExecRequest{
		SandboxId:    s.id,
		Command:      slices.Clone(command.Args),
		Cwd:          command.Dir,
		EnvOverrides: maps.Clone(command.Env),
		ExecId:       command.ExecID,
		User:         command.User,
		Stdin:        command.HasStdin || command.Stdin != nil,
	}
	if command.Timeout != 0 {
		request.Timeout = durationpb.New(command.Timeout)
	}
	if terminal := command.Terminal; terminal != nil {
		request.Terminal = &agboxv1.Terminal{Term: terminal.Term}
		if terminal.Rows != 0 || terminal.Columns != 0 {
			request.Terminal.Size = &agboxv1.TerminalSize{Rows: terminal.Rows, Columns: terminal.Columns}
		}
	}
	_, err := s.client.createExec(ctx, request)
	exec := s.client.Exec(request.ExecId)
	if err != nil && ctx.Err() != nil && command.ExecID == "" {
		err = errors.Join(err, exec.abandon(ctx))
	}
	if err != nil {
		return nil, err
	}
	return exec, nil
}

// An Exec is a command that runs, or ran, in a sandbox. It goes on when this program ends. It is safe for concurrent
// use.
type Exec struct {
	client *Client
	id     string
}

// Exec returns an exec by its ID. It makes no call.
func (c *Client) Exec(execID string) *Exec { return &Exec{c, execID} }

// ID returns the ID of the exec.
func (e *Exec) ID() string { return e.id }

// Status returns all that the daemon knows of the exec.
func (e *Exec) Status(ctx context.Context) (*agboxv1.ExecStatus, error) {
	return e.client.getExec(ctx, e.id)
}

// Wait returns how the command ended, without its output. The context limits the wait, not the command.
func (e *Exec) Wait(ctx context.Context) (*Result, error) {
	return e.Attach(ctx, AttachOptions{ReadOnly: true}).Wait()
}

// Cancel ends all processes of the command, and returns when they are gone.
func (e *Exec) Cancel(ctx context.Context) (*Result, error) {
	if _, err := e.client.raw.CancelExec(ctx, e.id); err != nil {
		return nil, err
	}
	return e.Wait(ctx)
}

// abandon ends a command whose context is done, if it was started at all.
func (e *Exec) abandon(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	_, err := e.Cancel(ctx)
	notFound, terminal := (*ExecNotFoundError)(nil), (*ExecAlreadyTerminalError)(nil)
	if err == nil || errors.As(err, &notFound) || errors.As(err, &terminal) {
		return nil
	}
	return fmt.Errorf("exec %s may still run: %w", e.id, err)
}

// Stdout returns a reader of the whole stdout, while it is being written and up to the end of the command. There may be
// any number of readers. Close each; the context ends it too.
func (e *Exec) Stdout(ctx context.Context) io.ReadCloser {
	return e.output(ctx, agboxv1.OutputStream_OUTPUT_STREAM_STDOUT, 0)
}

// Stderr is that of stderr.
func (e *Exec) Stderr(ctx context.Context) io.ReadCloser {
	return e.output(ctx, agboxv1.OutputStream_OUTPUT_STREAM_STDERR, 0)
}

// StdoutFrom is Stdout from a byte on, which may not have been written yet.
func (e *Exec) StdoutFrom(ctx context.Context, offset uint64) io.ReadCloser {
	return e.output(ctx, agboxv1.OutputStream_OUTPUT_STREAM_STDOUT, offset)
}

// StderrFrom is that of stderr.
func (e *Exec) StderrFrom(ctx context.Context, offset uint64) io.ReadCloser {
	return e.output(ctx, agboxv1.OutputStream_OUTPUT_STREAM_STDERR, offset)
}

// keptOutput keeps the beginning of what is written to it.
type keptOutput struct {
	kept        bytes.Buffer
	limit       int
	isTruncated bool
}

func (o *keptOutput) Write(data []byte) (int, error) {
	fits := min(len(data), o.limit-o.kept.Len())
	o.isTruncated = o.isTruncated || fits < len(data)
	o.kept.Write(data[:fits])
	return len(data), nil
}

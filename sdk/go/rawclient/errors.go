// SPDX-License-Identifier: Apache-2.0

package rawclient

import (
	"context"
	"fmt"
	"maps"
	"strconv"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A SandboxClientError is the base of all errors of the SDK: errors.As finds it in each of them.
type SandboxClientError struct {
	message  string
	cause    error
	code     codes.Code
	reason   string
	metadata map[string]string
}

// NewSandboxClientError returns an error without a reason.
func NewSandboxClientError(message string, cause error) *SandboxClientError {
	if message == "" {
		message = "RPC failed."
	}
	code := status.Code(cause)
	if code == codes.Unknown || cause == nil {
		code = status.FromContextError(cause).Code() // Unknown unless it is that of a context
	}
	return &SandboxClientError{message: message, cause: cause, code: code}
}

func (e *SandboxClientError) Error() string { return e.message }

func (e *SandboxClientError) Unwrap() error { return e.cause }

// Is makes errors.Is find the error of the context that ended a call.
func (e *SandboxClientError) Is(target error) bool {
	return target == context.DeadlineExceeded && e.code == codes.DeadlineExceeded ||
		target == context.Canceled && e.code == codes.Canceled
}

// Code returns the gRPC status code of the call.
func (e *SandboxClientError) Code() codes.Code { return e.code }

// Reason returns the daemon's reason for programs, such as ENGINE_UNAVAILABLE; empty if there is none. A newer daemon
// may have reasons that this SDK does not know.
func (e *SandboxClientError) Reason() string { return e.reason }

// Metadata returns the details that belong to the reason.
func (e *SandboxClientError) Metadata() map[string]string { return maps.Clone(e.metadata) }

// A SandboxConflictError reports that an ID is taken: of a sandbox or, if ExecID is set, of an exec.
type SandboxConflictError struct {
	*SandboxClientError
	SandboxID string
	ExecID    string
}

// A SandboxNotFoundError reports that there is no such sandbox.
type SandboxNotFoundError struct {
	*SandboxClientError
	SandboxID string
}

// A SandboxNotReadyError reports that a sandbox cannot run commands now. Its message has the state and the remedy.
type SandboxNotReadyError struct {
	*SandboxClientError
	SandboxID string
}

// A SandboxInvalidStateError reports that a sandbox is in another state than the operation needs.
type SandboxInvalidStateError struct {
	*SandboxClientError
}

// An ExecNotFoundError reports that there is no such exec.
type ExecNotFoundError struct {
	*SandboxClientError
	ExecID string
}

// An ExecAlreadyTerminalError reports that an exec has ended.
type ExecAlreadyTerminalError struct {
	*SandboxClientError
	ExecID string
}

// An ExecNotRunningError reports that an exec cannot be cancelled because it does not run.
type ExecNotRunningError struct {
	*SandboxInvalidStateError
	ExecID string
}

// NewExecNotRunningError returns the error of a cancel of that exec.
func NewExecNotRunningError(execID string, cause error) *ExecNotRunningError {
	base := NewSandboxClientError(fmt.Sprintf("Exec %s is not running.", execID), cause)
	return &ExecNotRunningError{&SandboxInvalidStateError{base}, execID}
}

// A SandboxSequenceExpiredError reports that a subscription began after the newest event. OldestSequence is nil
// unless the daemon sends it.
type SandboxSequenceExpiredError struct {
	*SandboxClientError
	SandboxID      string
	FromSequence   *uint64
	OldestSequence *uint64
}

// Unwrap of each typed error returns its base, so that errors.As finds that too.

func (e *SandboxConflictError) Unwrap() error        { return e.SandboxClientError }
func (e *SandboxNotFoundError) Unwrap() error        { return e.SandboxClientError }
func (e *SandboxNotReadyError) Unwrap() error        { return e.SandboxClientError }
func (e *SandboxInvalidStateError) Unwrap() error    { return e.SandboxClientError }
func (e *ExecNotFoundError) Unwrap() error           { return e.SandboxClientError }
func (e *ExecAlreadyTerminalError) Unwrap() error    { return e.SandboxClientError }
func (e *ExecNotRunningError) Unwrap() error         { return e.SandboxInvalidStateError }
func (e *SandboxSequenceExpiredError) Unwrap() error { return e.SandboxClientError }
func (e *DaemonUnreachableError) Unwrap() error      { return e.SandboxClientError }

// translate makes a typed error of that of a call. wasSent says whether the request may have reached the daemon.
func (c *RawClient) translate(err error, wasSent bool) error {
	if err == nil {
		return nil
	}
	received := status.Convert(err)
	base := &SandboxClientError{message: received.Message(), cause: err, code: received.Code()}
	for _, detail := range received.Details() {
		if info, isInfo := detail.(*errdetails.ErrorInfo); isInfo {
			base.reason, base.metadata = info.GetReason(), info.GetMetadata()
			break
		}
	}
	if base.reason == "" {
		switch base.code {
		case codes.Unavailable:
			base.message = diagnose(c.socket, base.message)
			return &DaemonUnreachableError{base, c.socket, wasSent}
		case codes.DeadlineExceeded:
			base.message = fmt.Sprintf("agboxd at %s did not answer in time: %s", c.socket, base.message)
		}
	}
	if base.message == "" {
		base.message = "RPC failed: " + base.code.String()
	}
	return typed(base)
}

// typed selects the type by the reason. Messages are those that the clients of all languages use.
func typed(base *SandboxClientError) error {
	sandboxID, execID := base.metadata["sandbox_id"], base.metadata["exec_id"]
	say := func(id, text string) {
		if id != "" {
			base.message = text
		}
	}
	switch base.reason {
	case "SANDBOX_CONFLICT", "SANDBOX_ID_ALREADY_EXISTS", "EXEC_ID_ALREADY_EXISTS":
		return &SandboxConflictError{base, sandboxID, execID}
	case "SANDBOX_NOT_FOUND":
		say(sandboxID, "Sandbox "+sandboxID+" not found.")
		return &SandboxNotFoundError{base, sandboxID}
	case "SANDBOX_NOT_READY":
		if base.message == "sandbox "+sandboxID+" is not ready" { // a longer message explains more
			say(sandboxID, "Sandbox "+sandboxID+" is not ready.")
		}
		return &SandboxNotReadyError{base, sandboxID}
	case "SANDBOX_INVALID_STATE":
		return &SandboxInvalidStateError{base}
	case "SANDBOX_EVENT_SEQUENCE_EXPIRED":
		return &SandboxSequenceExpiredError{
			base, sandboxID, number(base.metadata["from_sequence"]), number(base.metadata["oldest_sequence"]),
		}
	case "EXEC_NOT_FOUND":
		say(execID, "Exec "+execID+" not found.")
		return &ExecNotFoundError{base, execID}
	case "EXEC_ALREADY_TERMINAL":
		say(execID, "Exec "+execID+" is already terminal.")
		return &ExecAlreadyTerminalError{base, execID}
	case "EXEC_NOT_RUNNING":
		say(execID, "Exec "+execID+" is not running.")
		return &ExecNotRunningError{&SandboxInvalidStateError{base}, execID}
	default:
		return base
	}
}

func number(text string) *uint64 {
	value, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return nil
	}
	return &value
}

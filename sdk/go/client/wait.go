// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/1996fanrui/agents-sandbox/api/generated/agboxv1"
	"github.com/1996fanrui/agents-sandbox/sdk/go/rawclient"
)

// A SandboxFailedError reports that a sandbox cannot reach the state any more that was waited for.
type SandboxFailedError struct {
	*SandboxClientError
	SandboxID string
	State     SandboxState // in which it was seen instead
	ErrorCode string
}

// Unwrap returns the base, as that of the other errors.
func (e *SandboxFailedError) Unwrap() error { return e.SandboxClientError }

var stateNames = map[SandboxState]string{
	SandboxStatePending: "PENDING", SandboxStateReady: "READY", SandboxStateFailed: "FAILED",
	SandboxStateStopped: "STOPPED", SandboxStateDeleting: "DELETING", SandboxStateDeleted: "DELETED",
}

// String returns the name of the state, such as "READY".
func (s SandboxState) String() string {
	if name := stateNames[s]; name != "" {
		return name
	}
	return fmt.Sprintf("SandboxState(%d)", int32(s))
}

var execStateNames = map[ExecState]string{
	ExecStateRunning: "RUNNING", ExecStateFinished: "FINISHED", ExecStateFailed: "FAILED", ExecStateCancelled: "CANCELLED",
}

// String returns the name of the state, such as "RUNNING".
func (s ExecState) String() string {
	if name := execStateNames[s]; name != "" {
		return name
	}
	return fmt.Sprintf("ExecState(%d)", int32(s))
}

// String returns the name of the type in the API, such as "SANDBOX_READY".
func (t SandboxEventType) String() string { return agboxv1.EventType(t).String() }

// created sends a request that creates something. If its answer is lost and the ID is ours, it is sent again: "already
// exists" then says that an earlier one arrived, and isKnown is true.
func created[Response any](
	ctx context.Context, o *outage, isOurs bool, send func(context.Context) (Response, error),
) (response Response, isKnown bool, err error) {
	for wasRepeated := false; ; wasRepeated = true {
		response, err = send(ctx)
		conflict := (*SandboxConflictError)(nil)
		if wasRepeated && errors.As(err, &conflict) {
			return response, true, nil
		}
		lost := (*DaemonUnreachableError)(nil)
		if err == nil || !isOurs || !wasRepeated && !(errors.As(err, &lost) && lost.WasSent) {
			return response, false, err
		}
		if err = o.wait(ctx, err); err != nil {
			return response, false, err
		}
	}
}

// createSandbox returns the sandbox as it was accepted.
func (c *Client) createSandbox(
	ctx context.Context, request *agboxv1.CreateSandboxRequest,
) (*agboxv1.SandboxHandle, error) {
	isOurs := request.SandboxId == ""
	if isOurs {
		request.SandboxId = newID()
	}
	send := func(ctx context.Context) (*agboxv1.CreateSandboxResponse, error) {
		return c.raw.CreateSandbox(ctx, request)
	}
	response, isKnown, err := created(ctx, c.outage("create of sandbox "+request.SandboxId), isOurs, send)
	if err != nil {
		return nil, err
	}
	if isKnown {
		return c.getSandbox(ctx, request.SandboxId)
	}
	return response.GetSandbox(), nil
}

func (c *Client) createExec(
	ctx context.Context, request *agboxv1.CreateExecRequest,
) (*agboxv1.CreateExecResponse, error) {
	isOurs := request.ExecId == ""
	if isOurs {
		request.ExecId = newID()
	}
	send := func(ctx context.Context) (*agboxv1.CreateExecResponse, error) { return c.raw.CreateExec(ctx, request) }
	response, isKnown, err := created(ctx, c.outage("start of exec "+request.ExecId), isOurs, send)
	if err != nil || !isKnown {
		return response, err
	}
	exec, err := c.getExec(ctx, request.ExecId)
	return &agboxv1.CreateExecResponse{
		ExecId: request.ExecId, StdoutLogPath: exec.GetStdoutLogPath(), StderrLogPath: exec.GetStderrLogPath(),
	}, err
}

// newID returns a UUID, as the daemon generates them.
func newID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

func (c *Client) getSandbox(ctx context.Context, sandboxID string) (*agboxv1.SandboxHandle, error) {
	response, err := retry(ctx, c.outage("state of sandbox "+sandboxID),
		func(ctx context.Context) (*agboxv1.GetSandboxResponse, error) {
			return c.raw.GetSandbox(ctx, sandboxID)
		})
	return response.GetSandbox(), err
}

func (c *Client) getExec(ctx context.Context, execID string) (*agboxv1.ExecStatus, error) {
	response, err := retry(ctx, c.outage("state of exec "+execID),
		func(ctx context.Context) (*agboxv1.GetExecResponse, error) { return c.raw.GetExec(ctx, execID) })
	return response.GetExec(), err
}

func (c *Client) execSnapshot(ctx context.Context, execID string) (ExecHandle, error) {
	exec, err := c.getExec(ctx, execID)
	if err != nil {
		return ExecHandle{}, err
	}
	return toExecSnapshot(&agboxv1.GetExecResponse{Exec: exec})
}

// waitForSandbox follows the events after those that a state includes. It returns the state that ended the wait.
func (c *Client) waitForSandbox(
	ctx context.Context, now *agboxv1.SandboxHandle, goal SandboxState, operation string,
) (SandboxHandle, error) {
	sandboxID := now.GetSandboxId()
	if isDone, err := reached(now, goal, operation); isDone || err != nil {
		return handleOr(now, err)
	}
	from := subscription{after: now.GetLastEventSequence()}
	for event, err := range c.rawEvents(ctx, sandboxID, from) {
		if err != nil {
			return SandboxHandle{}, waitError(ctx, operation, sandboxID, goal, err)
		}
		// What the event says, in the form of a state.
		seen := &agboxv1.SandboxHandle{
			SandboxId: sandboxID, State: event.GetSandboxState(),
			ErrorCode:    event.GetSandboxPhase().GetErrorCode(),
			ErrorMessage: event.GetSandboxPhase().GetErrorMessage(),
		}
		isDone, err := reached(seen, goal, operation)
		if err != nil {
			return SandboxHandle{}, err
		}
		if isDone {
			last, err := c.getSandbox(ctx, sandboxID)
			return handleOr(last, err)
		}
	}
	// The history was purged, so it is deleted.
	now.State = agboxv1.SandboxState_SANDBOX_STATE_DELETED
	_, err := reached(now, goal, operation)
	return handleOr(now, err)
}

func handleOr(sandbox *agboxv1.SandboxHandle, err error) (SandboxHandle, error) {
	if err != nil {
		return SandboxHandle{}, err
	}
	return toSandboxHandle(sandbox)
}

// reached says whether a wait for a state is over, with an error if the state cannot be reached any more.
func reached(sandbox *agboxv1.SandboxHandle, goal SandboxState, operation string) (bool, error) {
	state := SandboxState(sandbox.GetState())
	if state == goal {
		return true, nil
	}
	canFollow := map[SandboxState]bool{ // the goal
		SandboxStateFailed:   goal == SandboxStateDeleting,
		SandboxStateStopped:  goal != SandboxStateReady,
		SandboxStateDeleting: goal == SandboxStateDeleted || goal == SandboxStateFailed,
		SandboxStateDeleted:  false,
	}
	if possible, isListed := canFollow[state]; possible || !isListed {
		return false, nil
	}
	message := fmt.Sprintf("%s observed sandbox %s in %s state.", operation, sandbox.GetSandboxId(), state)
	if code := sandbox.GetErrorCode(); code != "" {
		message += " " + code + ": " + sandbox.GetErrorMessage()
	}
	return false, &SandboxFailedError{
		rawclient.NewSandboxClientError(message, nil), sandbox.GetSandboxId(), state, sandbox.GetErrorCode(),
	}
}

// waitError says in an error of a wait what was waited for, if it is that the time is over.
func waitError(ctx context.Context, operation, sandboxID string, goal SandboxState, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return ended(ctx, fmt.Sprintf("sandbox %s to be %s (%s)", sandboxID, goal, operation))
}

// waitForExec follows the events of the sandbox for the end of an exec.
func (c *Client) waitForExec(ctx context.Context, exec ExecHandle, operation string) (ExecHandle, error) {
	if exec.State.IsTerminal() {
		return exec, nil
	}
	for event, err := range c.rawEvents(ctx, exec.SandboxID, subscription{after: exec.LastEventSequence}) {
		if err != nil {
			if ctx.Err() != nil {
				err = ended(ctx, fmt.Sprintf("the end of exec %s (%s)", exec.ExecID, operation))
			}
			return ExecHandle{}, err
		}
		if event.GetExec().GetExecId() == exec.ExecID && ExecState(event.GetExec().GetExecState()).IsTerminal() {
			return c.execSnapshot(ctx, exec.ExecID)
		}
	}
	return ExecHandle{}, rawclient.NewSandboxClientError(
		fmt.Sprintf("%s ended before exec %s: the history of sandbox %s was purged", operation, exec.ExecID, exec.SandboxID), nil)
}

// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"iter"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/1996fanrui/agents-sandbox/api/generated/agboxv1"
	"github.com/1996fanrui/agents-sandbox/sdk/go/rawclient"
)

// A Sandbox is one sandbox of the daemon. Its methods wait until what they ask for is done, and are limited by their
// context only. It is safe for concurrent use.
type Sandbox struct {
	client *Client
	id     string
}

// cleanupTimeout limits what is done after a context has ended.
const cleanupTimeout = 10 * time.Second

// Create creates a sandbox and returns when it is ready. If the context is done before, the sandbox is deleted.
func (c *Client) Create(ctx context.Context, opts ...CreateSandboxOption) (*Sandbox, error) {
	request, err := newCreateSandbox(opts)
	if err != nil {
		return nil, err
	}
	accepted, err := c.createSandbox(ctx, request.message)
	if err == nil && request.wait {
		_, err = c.waitForSandbox(ctx, accepted, SandboxStateReady, "create_sandbox")
	}
	if err == nil {
		return c.Sandbox(accepted.GetSandboxId()), nil
	}
	// With an ID of the caller it may be another one that exists already.
	if ctx.Err() == nil || accepted == nil && request.hasID {
		return nil, err
	}
	return nil, errors.Join(err, c.abandonSandbox(ctx, request.message.SandboxId))
}

func (c *Client) abandonSandbox(ctx context.Context, sandboxID string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	_, err := c.raw.DeleteSandbox(ctx, sandboxID)
	if notFound := (*SandboxNotFoundError)(nil); errors.As(err, &notFound) {
		return nil
	}
	return err
}

// Sandbox returns a sandbox by its ID. It makes no call.
func (c *Client) Sandbox(sandboxID string) *Sandbox { return &Sandbox{c, sandboxID} }

// ID returns the ID of the sandbox.
func (s *Sandbox) ID() string { return s.id }

// Status returns all that the daemon knows of the sandbox.
func (s *Sandbox) Status(ctx context.Context) (*agboxv1.SandboxHandle, error) {
	return s.client.getSandbox(ctx, s.id)
}

// Wait returns once the sandbox has a state, at once if it has it now. A SandboxFailedError says that it cannot reach it.
func (s *Sandbox) Wait(ctx context.Context, state SandboxState) error {
	now, err := s.client.getSandbox(ctx, s.id)
	if err == nil {
		_, err = s.client.waitForSandbox(ctx, now, state, "wait")
	}
	if notFound := (*SandboxNotFoundError)(nil); state == SandboxStateDeleted && errors.As(err, &notFound) {
		return nil
	}
	return err
}

// Stop ends the commands and the containers of the sandbox. Its files are kept.
func (s *Sandbox) Stop(ctx context.Context) error {
	return s.move(ctx, s.client.raw.StopSandbox, SandboxStateStopped, "stop_sandbox")
}

// Resume starts a stopped sandbox again.
func (s *Sandbox) Resume(ctx context.Context) error {
	return s.move(ctx, s.client.raw.ResumeSandbox, SandboxStateReady, "resume_sandbox")
}

// Delete removes the sandbox and everything in it. Its history is kept for a while.
func (s *Sandbox) Delete(ctx context.Context) error {
	return s.move(ctx, s.client.raw.DeleteSandbox, SandboxStateDeleted, "delete_sandbox")
}

func (s *Sandbox) move(ctx context.Context, begin operation, goal SandboxState, name string) error {
	if _, err := begin(ctx, s.id); err != nil {
		return err
	}
	now, err := s.client.getSandbox(ctx, s.id)
	if err == nil {
		_, err = s.client.waitForSandbox(ctx, now, goal, name)
	}
	return err
}

// Events returns the events of the sandbox, in order and each once, also across restarts of the daemon. It ends after
// an error, such as that of the context, and when the history of a deleted sandbox is purged.
func (s *Sandbox) Events(ctx context.Context, opts ...SubscribeOption) iter.Seq2[SandboxEvent, error] {
	return s.client.events(ctx, s.id, opts...)
}

// Stats returns what the containers of the sandbox use now.
func (s *Sandbox) Stats(ctx context.Context) (*agboxv1.SandboxStats, error) {
	response, err := s.client.raw.GetStats(ctx, s.id)
	return response.GetStats(), err
}

// WatchStats returns the same again and again, with this much time in between, until the sandbox is deleted.
func (s *Sandbox) WatchStats(ctx context.Context, interval time.Duration) iter.Seq2[*agboxv1.SandboxStats, error] {
	return func(yield func(*agboxv1.SandboxStats, error) bool) {
		request := &agboxv1.WatchStatsRequest{SandboxId: s.id, Interval: durationpb.New(interval)}
		open := func(ctx context.Context) (rawclient.Stream[agboxv1.WatchStatsResponse], error) {
			return s.client.raw.WatchStats(ctx, request)
		}
		for response, err := range follow(ctx, s.client.outage("usage of sandbox "+s.id), endIsEnd, open) {
			if !yield(response.GetStats(), err) {
				return
			}
		}
	}
}

// LogOptions select a part of the log of a container.
type LogOptions struct {
	Container string    // the name of a service or companion; empty is the sandbox itself
	Follow    bool      // also what is printed from now on, until the container is removed
	Since     time.Time // only what was printed then or later
	Tail      *uint64   // only so many lines before the current end
}

// Logs returns what a container of the sandbox printed: of the sandbox itself, what its main process printed.
func (s *Sandbox) Logs(ctx context.Context, options LogOptions) iter.Seq2[*agboxv1.ReadContainerLogsResponse, error] {
	return func(yield func(*agboxv1.ReadContainerLogsResponse, error) bool) {
		request := &agboxv1.ReadContainerLogsRequest{
			SandboxId: s.id, Container: options.Container, Follow: options.Follow, Tail: options.Tail,
		}
		if !options.Since.IsZero() {
			request.Since = timestamppb.New(options.Since)
		}
		open := func(ctx context.Context) (rawclient.Stream[agboxv1.ReadContainerLogsResponse], error) {
			return s.client.raw.ReadContainerLogs(ctx, request)
		}
		for part, err := range follow(ctx, s.client.outage("log of sandbox "+s.id), endIsEnd, open) {
			if err == nil && part.GetCursor() != "" {
				request.Cursor = part.GetCursor()
			}
			if !yield(part, err) {
				return
			}
		}
	}
}

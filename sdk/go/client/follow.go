// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/1996fanrui/agents-sandbox/api/generated/agboxv1"
	"github.com/1996fanrui/agents-sandbox/sdk/go/rawclient"
)

// An outage is the time in which the daemon cannot be reached, during a wait or a stream.
type outage struct {
	client  *Client
	what    string // is waited for, for error messages
	began   time.Time
	reached time.Time // when the daemon was last found to answer again
}

func (c *Client) outage(what string) *outage { return &outage{client: c, what: what} }

const (
	// Keeps a daemon that ends every stream from being called in a busy loop.
	pauseBeforeReconnect = 20 * time.Millisecond
	// A stream that has lasted so long was open, although nothing may have been sent: its loss is another outage.
	openAfter = time.Second
)

// end is called whenever the daemon has answered.
func (o *outage) end() { o.began = time.Time{} }

// wait returns nil when it makes sense to try again after a loss, and otherwise the error to report.
func (o *outage) wait(ctx context.Context, loss error) error {
	if ctx.Err() != nil {
		return ended(ctx, o.what)
	}
	if !isLoss(loss) {
		return loss
	}
	if now := time.Now(); o.began.IsZero() || now.Sub(o.reached) > openAfter && !o.reached.IsZero() {
		o.began = now
	}
	limit, cancel := context.WithDeadline(ctx, o.began.Add(o.client.reconnectTimeout))
	defer cancel()
	pause := time.NewTimer(pauseBeforeReconnect)
	defer pause.Stop()
	select {
	case <-pause.C:
		// Other errors are those of the next try.
		_ = o.client.raw.WaitUntilReachable(limit)
	case <-limit.Done():
	}
	switch {
	case ctx.Err() != nil:
		return ended(ctx, o.what)
	case limit.Err() != nil:
		return rawclient.NewSandboxClientError(fmt.Sprintf("lost the daemon while waiting for %s, and could not reach it for %s: %v",
			o.what, o.client.reconnectTimeout, loss), loss)
	}
	o.reached = time.Now()
	return nil
}

// isLoss says whether a stream or call ended because the daemon did, or cannot answer now.
func isLoss(err error) bool {
	if errors.Is(err, io.EOF) {
		return true
	}
	var failure *SandboxClientError
	return errors.As(err, &failure) && (failure.Code() == codes.Unavailable || failure.Code() == codes.Canceled)
}

// ended is the error of a wait whose context is done.
func ended(ctx context.Context, what string) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, context.DeadlineExceeded) {
		return rawclient.NewSandboxClientError("the time for waiting for "+what+" is over", cause)
	}
	return rawclient.NewSandboxClientError("waiting for "+what+" was cancelled: "+cause.Error(), cause)
}

// retry makes a call that may be repeated, until the daemon answers.
func retry[Response any](ctx context.Context, o *outage, call func(context.Context) (Response, error)) (Response, error) {
	for {
		response, err := call(ctx)
		if err == nil {
			o.end()
			return response, nil
		}
		if err = o.wait(ctx, err); err != nil {
			return response, err
		}
	}
}

// What the end of a stream in good order means.
type streamEnd int

const (
	endIsLoss streamEnd = iota // the daemon has ended
	endIsEnd
)

// follow reads a stream, and reads on after a lost connection: open begins where the reader is by then.
func follow[Message any](
	ctx context.Context, o *outage, end streamEnd, open func(context.Context) (rawclient.Stream[Message], error),
) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		for {
			loss, isDone := followOnce(ctx, o, open, yield)
			if isDone || end == endIsEnd && errors.Is(loss, io.EOF) {
				return
			}
			if err := o.wait(ctx, loss); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

func followOnce[Message any](
	ctx context.Context, o *outage, open func(context.Context) (rawclient.Stream[Message], error),
	yield func(*Message, error) bool,
) (loss error, isDone bool) {
	stream, err := open(ctx)
	if err != nil {
		return err, false
	}
	defer stream.Close()
	for {
		message, err := stream.Recv()
		if err != nil {
			return err, false
		}
		o.end()
		if !yield(message, nil) {
			return nil, true
		}
	}
}

// rawEvents reads the events of a sandbox, in order and each once. It ends when the history is purged.
func (c *Client) rawEvents(ctx context.Context, sandboxID string, from subscription) iter.Seq2[*agboxv1.SandboxEvent, error] {
	return func(yield func(*agboxv1.SandboxEvent, error) bool) {
		hasBegun := false
		open := func(ctx context.Context) (rawclient.Stream[agboxv1.SandboxEvent], error) {
			return c.raw.SubscribeSandboxEvents(ctx, sandboxID, from.after, from.includeSnapshot && !hasBegun)
		}
		for event, err := range follow(ctx, c.outage("events of sandbox "+sandboxID), endIsLoss, open) {
			if notFound := (*SandboxNotFoundError)(nil); hasBegun && errors.As(err, &notFound) {
				return
			}
			if err == nil {
				if hasBegun && !event.GetSnapshot() && event.GetSequence() <= from.after {
					continue
				}
				hasBegun = true
				from.after = max(from.after, event.GetSequence())
			}
			if !yield(event, err) {
				return
			}
		}
	}
}

func (c *Client) events(ctx context.Context, sandboxID string, opts ...SubscribeOption) iter.Seq2[SandboxEvent, error] {
	return func(yield func(SandboxEvent, error) bool) {
		from := subscription{}
		for _, option := range opts {
			option.applySubscribe(&from)
		}
		for event, err := range c.rawEvents(ctx, sandboxID, from) {
			converted := SandboxEvent{}
			if err == nil {
				converted, err = toSandboxEvent(event)
			}
			if !yield(converted, err) || err != nil {
				return
			}
		}
	}
}

// AllEventsOptions select events of all sandboxes.
type AllEventsOptions struct {
	Labels map[string]string // of the sandboxes; all of them must match
	Types  []SandboxEventType
	// The cursor of an earlier event: deliver what follows it.
	Cursor string
	// Without a cursor: deliver all events that are kept, instead of only those from now on.
	FromOldest bool
}

// An EventOfAll is an event of any sandbox, with the cursor to continue after it.
type EventOfAll struct {
	Cursor string
	// Nil in an item that only says one of the following.
	Event *SandboxEvent
	// All events that were recorded before the subscription have been delivered.
	CaughtUp bool
	// Events before this item are missing, because their history was purged.
	EventsMissing bool
}

// AllEvents returns the events of all sandboxes, in the order in which they were recorded and each once, also across
// restarts of the daemon. It ends when the context is done, with its error.
func (c *Client) AllEvents(ctx context.Context, options AllEventsOptions) iter.Seq2[EventOfAll, error] {
	return func(yield func(EventOfAll, error) bool) {
		request := &agboxv1.SubscribeEventsRequest{LabelSelector: options.Labels}
		for _, eventType := range options.Types {
			request.EventTypes = append(request.EventTypes, agboxv1.EventType(eventType))
		}
		start := agboxv1.EventsStart_EVENTS_START_NOW
		if options.FromOldest {
			start = agboxv1.EventsStart_EVENTS_START_OLDEST
		}
		request.From = &agboxv1.SubscribeEventsRequest_Start{Start: start}
		cursor := options.Cursor
		open := func(ctx context.Context) (rawclient.Stream[agboxv1.SubscribeEventsResponse], error) {
			if cursor != "" {
				request.From = &agboxv1.SubscribeEventsRequest_Cursor{Cursor: cursor}
			}
			return c.raw.SubscribeEvents(ctx, request)
		}
		for response, err := range follow(ctx, c.outage("events of all sandboxes"), endIsLoss, open) {
			item := EventOfAll{}
			if err == nil {
				cursor = response.GetCursor()
				item = EventOfAll{Cursor: cursor, CaughtUp: response.GetCaughtUp(), EventsMissing: response.GetEventsMissing()}
				if event := response.GetEvent(); event != nil {
					converted := SandboxEvent{}
					converted, err = toSandboxEvent(event)
					item.Event = &converted
				} else if !item.CaughtUp && !item.EventsMissing {
					continue // it only advances the cursor
				}
			}
			if !yield(item, err) || err != nil {
				return
			}
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package rawclient

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	"github.com/1996fanrui/agents-sandbox/api/generated/agboxv1"
)

// A Stream receives messages until its context is done or it is closed.
type Stream[Message any] interface {
	// Recv waits for the next message. It returns io.EOF when the daemon has ended the stream in good order.
	Recv() (*Message, error)
	// Close ends the stream. It may be called more than once, and while Recv waits.
	Close() error
}

// A SandboxEventStream receives the events of a sandbox.
type SandboxEventStream interface {
	Recv() (*agboxv1.SandboxEvent, error)
	Close() error
}

type serverStream[Message any] struct {
	client *RawClient
	stream grpc.ServerStreamingClient[Message]
	cancel context.CancelFunc
}

func openStream[Request, Message any](
	ctx context.Context, c *RawClient,
	open func(context.Context, *Request, ...grpc.CallOption) (grpc.ServerStreamingClient[Message], error),
	request *Request,
) (Stream[Message], error) {
	c.prepare(ctx)
	ctx, cancel := context.WithCancel(ctx)
	stream, err := open(ctx, request)
	if err != nil {
		cancel()
		return nil, c.translate(err, false)
	}
	return &serverStream[Message]{client: c, stream: stream, cancel: cancel}, nil
}

func (s *serverStream[Message]) Recv() (*Message, error) {
	message, err := s.stream.Recv()
	return received(s.client, message, err)
}

func (s *serverStream[Message]) Close() error {
	s.cancel()
	return nil
}

func received[Message any](c *RawClient, message *Message, err error) (*Message, error) {
	if errors.Is(err, io.EOF) {
		return nil, io.EOF
	}
	if err != nil {
		return nil, c.translate(err, true)
	}
	return message, nil
}

// An AttachStream is a conversation with an exec. Send must not be called concurrently with itself.
type AttachStream struct {
	client *RawClient
	stream grpc.BidiStreamingClient[agboxv1.AttachExecRequest, agboxv1.AttachExecResponse]
	cancel context.CancelFunc
}

// AttachExec opens a conversation, in which the first message to send is AttachStart.
func (c *RawClient) AttachExec(ctx context.Context) (*AttachStream, error) {
	c.prepare(ctx)
	ctx, cancel := context.WithCancel(ctx)
	stream, err := c.stub.AttachExec(ctx)
	if err != nil {
		cancel()
		return nil, c.translate(err, false)
	}
	return &AttachStream{client: c, stream: stream, cancel: cancel}, nil
}

// Send returns io.EOF if the stream has ended; Recv then returns the reason.
func (s *AttachStream) Send(request *agboxv1.AttachExecRequest) error { return s.stream.Send(request) }

// Recv is that of a Stream.
func (s *AttachStream) Recv() (*agboxv1.AttachExecResponse, error) {
	message, err := s.stream.Recv()
	return received(s.client, message, err)
}

// Close is that of a Stream. The exec goes on.
func (s *AttachStream) Close() error {
	s.cancel()
	return nil
}

// A CopyInStream sends a tar stream into a sandbox.
type CopyInStream struct {
	client *RawClient
	stream grpc.ClientStreamingClient[agboxv1.CopyInRequest, agboxv1.CopyInResponse]
	cancel context.CancelFunc
}

// CopyIn begins to unpack a tar stream in a sandbox.
func (c *RawClient) CopyIn(ctx context.Context, target *agboxv1.CopyInTarget) (*CopyInStream, error) {
	c.prepare(ctx)
	ctx, cancel := context.WithCancel(ctx)
	stream, err := c.stub.CopyIn(ctx)
	if err == nil {
		err = stream.Send(&agboxv1.CopyInRequest{Part: &agboxv1.CopyInRequest_Target{Target: target}})
		if errors.Is(err, io.EOF) { // Finish returns the reason
			err = nil
		}
	}
	if err != nil {
		cancel()
		return nil, c.translate(err, false)
	}
	return &CopyInStream{client: c, stream: stream, cancel: cancel}, nil
}

// copyInChunk is how much of a tar stream one message has.
const copyInChunk = 256 << 10

// Write sends the next bytes. It returns io.EOF if the daemon has ended the call; Finish then returns the reason.
func (s *CopyInStream) Write(data []byte) (int, error) {
	for sent := 0; ; sent += copyInChunk {
		if sent >= len(data) {
			return len(data), nil
		}
		chunk := data[sent:min(len(data), sent+copyInChunk)]
		if err := s.stream.Send(&agboxv1.CopyInRequest{Part: &agboxv1.CopyInRequest_Data{Data: chunk}}); err != nil {
			return sent, err
		}
	}
}

// Finish returns once everything is in place.
func (s *CopyInStream) Finish() (*agboxv1.CopyInResponse, error) {
	defer s.cancel()
	response, err := s.stream.CloseAndRecv()
	if err != nil {
		return nil, s.client.translate(err, true)
	}
	return response, nil
}

// Close cancels the copy unless Finish has returned: what was sent is no complete archive, and the sandbox says so.
func (s *CopyInStream) Close() error {
	s.cancel()
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/1996fanrui/agents-sandbox/api/generated/agboxv1"
	"github.com/1996fanrui/agents-sandbox/sdk/go/rawclient"
)

// AttachOptions say what a session with an exec does.
type AttachOptions struct {
	// Do not take the input from the client that writes now.
	ReadOnly bool
	// What takes the output; nil means that it is not read. Both are called from one goroutine, so that one that blocks
	// delays the other.
	Stdout, Stderr io.Writer
	// Where the output begins. Nil means the last 64 KiB so far, and what follows.
	StdoutOffset, StderrOffset *uint64
}

// A Session is a conversation with an exec: its output, and its stdin or terminal. It survives restarts of the daemon,
// and so does the exec: output continues where it stopped, and input is neither lost nor sent twice. Its end does not
// end the exec. Its methods may be called from any goroutine.
type Session struct {
	client  *Client
	execID  string
	options AttachOptions
	done    chan struct{}
	result  *Result // after done
	err     error

	mutex       sync.Mutex
	changed     sync.Cond
	stream      *rawclient.AttachStream // while it is attached
	unaccepted  []byte                  // written by the caller, and not accepted by the exec
	sent        int                     // of these, on this connection
	position    *uint64                 // of the first of them in the exec's input
	isInputOver bool
	wantsEnd    bool
	hasSentEnd  bool
	size        *agboxv1.TerminalSize
}

const (
	// The daemon accepts what it can write into the exec's pipe; it takes this much more.
	maxUnaccepted = 64 << 10
	maxInput      = 32 << 10 // of one message
)

var errInputOver = rawclient.NewSandboxClientError("the exec takes no more input of this session", io.ErrClosedPipe)

// Attach begins a session with an exec, which lasts until the exec has ended or the context is done: see Wait.
func (e *Exec) Attach(ctx context.Context, options AttachOptions) *Session {
	session := &Session{
		client: e.client, execID: e.id, options: options, done: make(chan struct{}), isInputOver: options.ReadOnly,
	}
	session.changed.L = &session.mutex
	go session.run(ctx)
	return session
}

// Wait returns how the exec ended, after all of its output was written.
func (s *Session) Wait() (*Result, error) {
	<-s.done
	return s.result, s.err
}

// Write sends input. It waits while the exec does not take it.
func (s *Session) Write(data []byte) (int, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	written := 0
	for written < len(data) {
		for !s.isInputOver && len(s.unaccepted) >= maxUnaccepted {
			s.changed.Wait()
		}
		if s.isInputOver || s.wantsEnd {
			return written, errInputOver
		}
		size := min(len(data)-written, maxUnaccepted-len(s.unaccepted))
		s.unaccepted = append(s.unaccepted, data[written:written+size]...)
		written += size
		s.sendUnsent()
	}
	return written, nil
}

// CloseInput ends the input after what was written: a command gets end of file, a terminal Ctrl-D.
func (s *Session) CloseInput() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.wantsEnd = true
	s.sendUnsent()
}

// Resize sets the size of the exec's terminal.
func (s *Session) Resize(rows, columns uint32) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.size = &agboxv1.TerminalSize{Rows: rows, Columns: columns}
	s.sendSize()
}

// Signal sends a signal to the foreground process group of the exec's terminal, or to the process group of the
// command. It is lost if the daemon is being restarted.
func (s *Session) Signal(number int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.sendMessage(&agboxv1.AttachExecRequest{Message: &agboxv1.AttachExecRequest_Signal{Signal: uint32(number)}})
}

// send passes on all of a reader.
func (s *Session) send(input io.Reader) {
	_, err := io.Copy(s, input)
	if !errors.Is(err, io.ErrClosedPipe) { // otherwise nothing reads it any more
		s.CloseInput()
	}
}

func (s *Session) run(ctx context.Context) {
	defer close(s.done)
	outage := s.client.outage("exec " + s.execID)
	for s.err == nil {
		status, loss := s.follow(ctx, outage)
		if status != nil {
			s.result = toResult(status)
			break
		}
		var failed *outputError
		if errors.As(loss, &failed) {
			s.err = failed.error
		} else {
			s.err = outage.wait(ctx, loss)
		}
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.isInputOver = true
	s.changed.Broadcast()
}

// An outputError is that of a writer of the caller.
type outputError struct{ error }

// follow is one connection: until the exec has ended, or the connection is lost.
func (s *Session) follow(ctx context.Context, outage *outage) (*agboxv1.ExecStatus, error) {
	stream, err := s.client.raw.AttachExec(ctx)
	if err != nil {
		return nil, err
	}
	defer s.detach(stream)
	s.mutex.Lock()
	start := &agboxv1.AttachStart{
		ExecId: s.execID, Write: !s.isInputOver, Output: s.options.Stdout != nil || s.options.Stderr != nil,
		StdoutOffset: s.options.StdoutOffset, StderrOffset: s.options.StderrOffset,
	}
	s.mutex.Unlock()
	// If it fails, Recv says why.
	_ = stream.Send(&agboxv1.AttachExecRequest{Message: &agboxv1.AttachExecRequest_Start{Start: start}})
	for {
		response, err := stream.Recv()
		if err != nil {
			return nil, err
		}
		outage.end()
		switch message := response.GetMessage().(type) {
		case *agboxv1.AttachExecResponse_Attached:
			s.attached(stream, message.Attached.GetInputOffset())
		case *agboxv1.AttachExecResponse_Output:
			if err := s.pass(message.Output); err != nil {
				return nil, err
			}
		case *agboxv1.AttachExecResponse_InputAccepted:
			s.accepted(message.InputAccepted)
		case *agboxv1.AttachExecResponse_InputStopped:
			s.stopInput()
		case *agboxv1.AttachExecResponse_Ended:
			return message.Ended, nil
		}
	}
}

func (s *Session) pass(output *agboxv1.AttachOutput) error {
	writer, offset := s.options.Stdout, &s.options.StdoutOffset
	if output.GetStream() == agboxv1.OutputStream_OUTPUT_STREAM_STDERR {
		writer, offset = s.options.Stderr, &s.options.StderrOffset
	}
	next := output.GetOffset() + uint64(len(output.GetData()))
	*offset = &next
	if writer == nil {
		return nil
	}
	if _, err := writer.Write(output.GetData()); err != nil {
		return &outputError{err}
	}
	return nil
}

// attached drops what the exec has got although it was not accepted, because the daemon ended in between.
func (s *Session) attached(stream *rawclient.AttachStream, offset uint64) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.position != nil && offset > *s.position {
		s.unaccepted = s.unaccepted[min(offset-*s.position, uint64(len(s.unaccepted))):]
	}
	s.stream, s.position, s.sent, s.hasSentEnd = stream, &offset, 0, false
	s.sendSize()
	s.sendUnsent()
	s.changed.Broadcast()
}

func (s *Session) detach(stream *rawclient.AttachStream) {
	s.mutex.Lock()
	s.stream = nil
	s.mutex.Unlock()
	_ = stream.Close() // returns nil
}

func (s *Session) accepted(offset uint64) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.position != nil && offset > *s.position {
		size := min(offset-*s.position, uint64(s.sent))
		s.unaccepted = s.unaccepted[size:]
		s.sent -= int(size)
	}
	s.position = &offset
	s.sendUnsent()
	s.changed.Broadcast()
}

func (s *Session) stopInput() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.isInputOver, s.unaccepted, s.sent = true, nil, 0
	s.changed.Broadcast()
}

// The following are called with the mutex held. If a message cannot be sent the connection is lost: Recv says so, and
// what counts is sent on the next one.

func (s *Session) sendMessage(message *agboxv1.AttachExecRequest) {
	if s.stream != nil {
		_ = s.stream.Send(message)
	}
}

func (s *Session) sendSize() {
	if s.size != nil && !s.isInputOver {
		s.sendMessage(&agboxv1.AttachExecRequest{Message: &agboxv1.AttachExecRequest_Resize{Resize: s.size}})
	}
}

func (s *Session) sendUnsent() {
	if s.stream == nil || s.isInputOver {
		return
	}
	for s.sent < len(s.unaccepted) {
		part := s.unaccepted[s.sent:min(len(s.unaccepted), s.sent+maxInput)]
		s.sent += len(part)
		s.sendMessage(&agboxv1.AttachExecRequest{Message: &agboxv1.AttachExecRequest_Input{Input: part}})
	}
	if s.wantsEnd && !s.hasSentEnd {
		s.hasSentEnd = true
		s.sendMessage(&agboxv1.AttachExecRequest{
			Message: &agboxv1.AttachExecRequest_EndInput{EndInput: &agboxv1.AttachEndInput{}},
		})
	}
}

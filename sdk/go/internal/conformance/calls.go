// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	pb "github.com/1996fanrui/agents-sandbox/api/generated/agboxv1"
	"github.com/1996fanrui/agents-sandbox/sdk/go/rawclient"
)

var codeNames = map[codes.Code]string{
	codes.InvalidArgument: "INVALID_ARGUMENT", codes.NotFound: "NOT_FOUND", codes.AlreadyExists: "ALREADY_EXISTS",
	codes.FailedPrecondition: "FAILED_PRECONDITION", codes.OutOfRange: "OUT_OF_RANGE", codes.Unavailable: "UNAVAILABLE",
}

// A receiver reads one message of a stream.
type receiver func() (proto.Message, error)

func (r *runner) call(ctx context.Context, step step) (any, error) {
	raw := r.client.Raw()
	if open := streams[step.RPC]; open != nil {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		receive, err := open(ctx, raw, step)
		if err != nil {
			return nil, err
		}
		return readStream(receive, step.Stream)
	}
	call := calls[step.RPC]
	if call == nil {
		return nil, fmt.Errorf("there is no call %q", step.RPC)
	}
	response, err := call(ctx, raw, step)
	if err != nil {
		return nil, err
	}
	converted, err := messageJSON(response)
	if err == nil && step.Response != nil {
		err = match(step.Response, converted)
	}
	return converted, err
}

func messageJSON(message proto.Message) (any, error) {
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(message)
	if err != nil {
		return nil, err
	}
	var converted any
	return converted, json.Unmarshal(text, &converted)
}

func readStream(receive receiver, wanted streamWanted) (any, error) {
	var last any
	joined, isFound := strings.Builder{}, make([]bool, len(wanted.Contains))
	for {
		message, err := receive()
		if errors.Is(err, io.EOF) {
			if wanted.Until != nil {
				return nil, fmt.Errorf("the stream ended before a message like %v", wanted.Until)
			}
			break
		}
		if err != nil {
			return nil, err
		}
		if last, err = messageJSON(message); err != nil {
			return nil, err
		}
		for i, one := range wanted.Contains {
			isFound[i] = isFound[i] || match(one, last) == nil
		}
		if wanted.Joined != nil {
			if text, isText := at(last, wanted.Joined.Field).(string); isText {
				data, err := base64.StdEncoding.DecodeString(text)
				if err != nil {
					return nil, err
				}
				joined.Write(data)
			}
		}
		if wanted.Until != nil && match(wanted.Until, last) == nil {
			break
		}
	}
	for i, one := range wanted.Contains {
		if !isFound[i] {
			return nil, fmt.Errorf("no message like %v", one)
		}
	}
	if wanted.Joined != nil && joined.String() != wanted.Joined.Text {
		return nil, fmt.Errorf("expected the bytes %q, got %q", wanted.Joined.Text, joined.String())
	}
	return last, nil
}

type unaryCall func(context.Context, *rawclient.RawClient, step) (proto.Message, error)

func parsed(text json.RawMessage, into proto.Message) error { return protojson.Unmarshal(text, into) }

// unary makes a step a call whose method takes the request.
func unary[Request, Response any](
	method func(*rawclient.RawClient) func(context.Context, *Request) (*Response, error),
) unaryCall {
	return func(ctx context.Context, raw *rawclient.RawClient, step step) (proto.Message, error) {
		request := new(Request)
		if err := parsed(step.Request, any(request).(proto.Message)); err != nil {
			return nil, err
		}
		response, err := method(raw)(ctx, request)
		return any(response).(proto.Message), err
	}
}

// byID makes a step a call whose method takes one ID.
func byID[Response any](
	field string, method func(*rawclient.RawClient) func(context.Context, string) (*Response, error),
) unaryCall {
	return func(ctx context.Context, raw *rawclient.RawClient, step step) (proto.Message, error) {
		var request map[string]string
		if err := json.Unmarshal(step.Request, &request); err != nil {
			return nil, err
		}
		response, err := method(raw)(ctx, request[field])
		return any(response).(proto.Message), err
	}
}

type rawClient = rawclient.RawClient

var calls = map[string]unaryCall{
	"Ping": func(ctx context.Context, raw *rawClient, _ step) (proto.Message, error) { return raw.Ping(ctx) },
	"CreateSandbox": unary(func(c *rawClient) func(context.Context, *pb.CreateSandboxRequest) (*pb.CreateSandboxResponse, error) {
		return c.CreateSandbox
	}),
	"GetSandbox": byID("sandbox_id", func(c *rawClient) func(context.Context, string) (*pb.GetSandboxResponse, error) {
		return c.GetSandbox
	}),
	"ListSandboxes": unary(func(c *rawClient) func(context.Context, *pb.ListSandboxesRequest) (*pb.ListSandboxesResponse, error) {
		return c.ListSandboxes
	}),
	"ResumeSandbox": byID("sandbox_id", func(c *rawClient) func(context.Context, string) (*pb.AcceptedResponse, error) {
		return c.ResumeSandbox
	}),
	"StopSandbox": byID("sandbox_id", func(c *rawClient) func(context.Context, string) (*pb.AcceptedResponse, error) {
		return c.StopSandbox
	}),
	"DeleteSandbox": byID("sandbox_id", func(c *rawClient) func(context.Context, string) (*pb.AcceptedResponse, error) {
		return c.DeleteSandbox
	}),
	"DeleteSandboxes": unary(func(c *rawClient) func(context.Context, *pb.DeleteSandboxesRequest) (*pb.DeleteSandboxesResponse, error) {
		return c.DeleteSandboxes
	}),
	"CreateExec": unary(func(c *rawClient) func(context.Context, *pb.CreateExecRequest) (*pb.CreateExecResponse, error) {
		return c.CreateExec
	}),
	"CancelExec": byID("exec_id", func(c *rawClient) func(context.Context, string) (*pb.AcceptedResponse, error) {
		return c.CancelExec
	}),
	"GetExec": byID("exec_id", func(c *rawClient) func(context.Context, string) (*pb.GetExecResponse, error) { return c.GetExec }),
	"ListActiveExecs": byID("sandbox_id", func(c *rawClient) func(context.Context, string) (*pb.ListActiveExecsResponse, error) {
		return c.ListActiveExecs
	}),
	"ListExecs": unary(func(c *rawClient) func(context.Context, *pb.ListExecsRequest) (*pb.ListExecsResponse, error) {
		return c.ListExecs
	}),
	"GetStats": byID("sandbox_id", func(c *rawClient) func(context.Context, string) (*pb.GetStatsResponse, error) { return c.GetStats }),
	"Diagnose": unary(func(c *rawClient) func(context.Context, *pb.DiagnoseRequest) (*pb.DiagnoseResponse, error) {
		return c.Diagnose
	}),
	"CopyIn": copyIn,
}

func copyIn(ctx context.Context, raw *rawClient, step step) (proto.Message, error) {
	requests := make([]*pb.CopyInRequest, len(step.Requests))
	for i, text := range step.Requests {
		requests[i] = &pb.CopyInRequest{}
		if err := parsed(text, requests[i]); err != nil {
			return nil, err
		}
	}
	stream, err := raw.CopyIn(ctx, requests[0].GetTarget())
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	for _, request := range requests[1:] {
		if _, err := stream.Write(request.GetData()); err != nil {
			break // Finish says why
		}
	}
	return stream.Finish()
}

type openedStream func(context.Context, *rawClient, step) (receiver, error)

func server[Request, Message any](
	method func(*rawClient) func(context.Context, *Request) (rawclient.Stream[Message], error),
) openedStream {
	return func(ctx context.Context, raw *rawClient, step step) (receiver, error) {
		request := new(Request)
		if err := parsed(step.Request, any(request).(proto.Message)); err != nil {
			return nil, err
		}
		stream, err := method(raw)(ctx, request)
		if err != nil {
			return nil, err
		}
		return func() (proto.Message, error) {
			message, err := stream.Recv()
			return any(message).(proto.Message), err
		}, nil
	}
}

var streams = map[string]openedStream{
	"SubscribeSandboxEvents": server(func(c *rawClient) func(context.Context, *pb.SubscribeSandboxEventsRequest) (rawclient.Stream[pb.SandboxEvent], error) {
		return func(ctx context.Context, request *pb.SubscribeSandboxEventsRequest) (rawclient.Stream[pb.SandboxEvent], error) {
			return c.SubscribeSandboxEvents(ctx, request.SandboxId, request.FromSequence, request.IncludeCurrentSnapshot)
		}
	}),
	"SubscribeEvents": server(func(c *rawClient) func(context.Context, *pb.SubscribeEventsRequest) (rawclient.Stream[pb.SubscribeEventsResponse], error) {
		return c.SubscribeEvents
	}),
	"ReadExecOutput": server(func(c *rawClient) func(context.Context, *pb.ReadExecOutputRequest) (rawclient.Stream[pb.ReadExecOutputResponse], error) {
		return c.ReadExecOutput
	}),
	"ReadContainerLogs": server(func(c *rawClient) func(context.Context, *pb.ReadContainerLogsRequest) (rawclient.Stream[pb.ReadContainerLogsResponse], error) {
		return c.ReadContainerLogs
	}),
	"WatchStats": server(func(c *rawClient) func(context.Context, *pb.WatchStatsRequest) (rawclient.Stream[pb.WatchStatsResponse], error) {
		return c.WatchStats
	}),
	"HoldSandbox": server(func(c *rawClient) func(context.Context, *pb.HoldSandboxRequest) (rawclient.Stream[pb.HoldSandboxResponse], error) {
		return func(ctx context.Context, request *pb.HoldSandboxRequest) (rawclient.Stream[pb.HoldSandboxResponse], error) {
			return c.HoldSandbox(ctx, request.SandboxId)
		}
	}),
	"CopyOut": server(func(c *rawClient) func(context.Context, *pb.CopyOutRequest) (rawclient.Stream[pb.CopyOutResponse], error) {
		return c.CopyOut
	}),
	"AttachExec": attach,
}

func attach(ctx context.Context, raw *rawClient, step step) (receiver, error) {
	stream, err := raw.AttachExec(ctx)
	if err != nil {
		return nil, err
	}
	first, left := true, step.Requests
	sendNext := func() error {
		request := &pb.AttachExecRequest{}
		if err := parsed(left[0], request); err != nil {
			return err
		}
		left = left[1:]
		return stream.Send(request)
	}
	if err := sendNext(); err != nil {
		return nil, err
	}
	return func() (proto.Message, error) {
		message, err := stream.Recv()
		for err == nil && first && len(left) > 0 {
			err = sendNext()
		}
		first = false
		return message, err
	}, nil
}

// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"io"

	"github.com/1996fanrui/agents-sandbox/api/generated/agboxv1"
	"github.com/1996fanrui/agents-sandbox/sdk/go/rawclient"
)

type outputReader struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (r outputReader) Close() error {
	r.cancel()
	return r.PipeReader.Close()
}

// output reads one output of an exec, after a lost connection from the next byte on.
func (e *Exec) output(ctx context.Context, stream agboxv1.OutputStream, offset uint64) io.ReadCloser {
	ctx, cancel := context.WithCancel(ctx)
	reader, writer := io.Pipe()
	what := "output of exec " + e.id
	context.AfterFunc(ctx, func() { writer.CloseWithError(ended(ctx, what)) })
	go func() {
		defer cancel()
		request := &agboxv1.ReadExecOutputRequest{ExecId: e.id, Stream: stream, Offset: offset, Follow: true}
		open := func(ctx context.Context) (rawclient.Stream[agboxv1.ReadExecOutputResponse], error) {
			return e.client.raw.ReadExecOutput(ctx, request)
		}
		for part, err := range follow(ctx, e.client.outage(what), endIsEnd, open) {
			if err == nil {
				_, err = writer.Write(part.GetData())
				request.Offset += uint64(len(part.GetData()))
			}
			if err != nil {
				writer.CloseWithError(err)
				return
			}
		}
		writer.Close()
	}()
	return outputReader{reader, cancel}
}

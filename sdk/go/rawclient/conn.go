// SPDX-License-Identifier: Apache-2.0

// Package rawclient is the transport of the Go SDK: one method per call of the daemon's API, with its protobuf
// messages, typed errors and streams. It never repeats a call. Most programs want package client.
package rawclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	defaultTimeout = 5 * time.Second

	// A restarted daemon is reached at once; gRPC's default delay grows to two minutes.
	firstReconnectDelay = 20 * time.Millisecond
	maxReconnectDelay   = 500 * time.Millisecond
	connectTimeout      = 5 * time.Second
)

// DefaultSocketPath returns the path of the socket of this user's daemon.
func DefaultSocketPath() (string, error) {
	return socketPath(runtime.GOOS, os.Getenv)
}

func socketPath(system string, variable func(string) string) (string, error) {
	base := variable("XDG_RUNTIME_DIR")
	switch {
	case base != "" && !filepath.IsAbs(base):
		return "", fmt.Errorf("XDG_RUNTIME_DIR must be an absolute path, but is %q", base)
	case base != "":
		return filepath.Join(base, "agbox", "agboxd.sock"), nil
	case system != "darwin":
		return "", errors.New("resolve runtime path: XDG_RUNTIME_DIR is required on linux; a login session sets it to " +
			"/run/user/<uid>, elsewhere set it to a directory that only you can access")
	}
	home := variable("HOME")
	if !filepath.IsAbs(home) {
		return "", fmt.Errorf("HOME must be the absolute path of your home directory, but is %q", home)
	}
	return filepath.Join(home, "Library", "Application Support", "agbox", "run", "agboxd.sock"), nil
}

// Dial opens a gRPC connection to the daemon at a socket. It connects with the first call.
func Dial(socketPath string, options ...grpc.DialOption) (*grpc.ClientConn, error) {
	dial := func(ctx context.Context, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socketPath)
	}
	delay := backoff.Config{BaseDelay: firstReconnectDelay, Multiplier: 1.6, Jitter: 0.2, MaxDelay: maxReconnectDelay}
	return grpc.NewClient("passthrough:///agents-sandbox", append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(dial),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: delay, MinConnectTimeout: connectTimeout}),
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableRetry(), // a call that may have reached the daemon is repeated by the caller or not at all
	}, options...)...)
}

// A CallOption configures a RawClient.
type CallOption func(*callOptions)

type callOptions struct {
	timeout     time.Duration
	dialOptions []grpc.DialOption
}

// WithTimeout limits each call whose context has no deadline; 0 means no limit. It does not limit streams, which last
// until they are closed or their context is done. The default is 5 seconds.
func WithTimeout(limit time.Duration) CallOption {
	return func(options *callOptions) { options.timeout = limit }
}

// WithDialOptions adds options of the gRPC connection.
func WithDialOptions(dialOptions ...grpc.DialOption) CallOption {
	return func(options *callOptions) { options.dialOptions = append(options.dialOptions, dialOptions...) }
}

// SPDX-License-Identifier: Apache-2.0

package rawclient

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"
)

// A DaemonUnreachableError reports that there was no connection to the daemon, or that it was lost. Its message has
// the cause and the remedy.
type DaemonUnreachableError struct {
	*SandboxClientError
	SocketPath string
	// The request may have reached the daemon.
	WasSent bool
}

const (
	maxSocketPath = 107 // bytes, on Linux
	startIt       = `start it with "agbox daemon start"`
)

// diagnose explains why a call could not be made, by connecting once more.
func diagnose(socket, transport string) string {
	if len(socket) > maxSocketPath {
		return fmt.Sprintf("socket path %s is too long: %d bytes, the limit is %d; set XDG_RUNTIME_DIR to a shorter path",
			socket, len(socket), maxSocketPath)
	}
	err := tryToConnect(socket)
	switch {
	case err == nil:
		return fmt.Sprintf("lost the connection to agboxd at %s (%s); it serves only the user that runs it, see its log "+
			"with \"journalctl --user -u agboxd\"", socket, transport)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("agboxd is not running: socket %s does not exist; %s", socket, startIt)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("cannot connect to agboxd at %s: permission denied; each user runs their own agboxd, so "+
			"XDG_RUNTIME_DIR must be a directory of this user", socket)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("agboxd is not running: no process listens on %s; %s", socket, startIt)
	default:
		return fmt.Sprintf("cannot connect to agboxd: %s; %s", err, startIt)
	}
}

func tryToConnect(socket string) error {
	connection, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return err
	}
	return connection.Close()
}

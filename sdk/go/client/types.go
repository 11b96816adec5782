// SPDX-License-Identifier: Apache-2.0

package client

import (
	"time"

	"github.com/1996fanrui/agents-sandbox/sdk/go/rawclient"
)

// The errors of package rawclient, so that errors.As needs no other import.
type (
	SandboxClientError          = rawclient.SandboxClientError
	SandboxConflictError        = rawclient.SandboxConflictError
	SandboxNotFoundError        = rawclient.SandboxNotFoundError
	SandboxNotReadyError        = rawclient.SandboxNotReadyError
	SandboxInvalidStateError    = rawclient.SandboxInvalidStateError
	SandboxSequenceExpiredError = rawclient.SandboxSequenceExpiredError
	ExecNotFoundError           = rawclient.ExecNotFoundError
	ExecAlreadyTerminalError    = rawclient.ExecAlreadyTerminalError
	ExecNotRunningError         = rawclient.ExecNotRunningError
	DaemonUnreachableError      = rawclient.DaemonUnreachableError
)

// A SandboxState is where a sandbox is in its life. A newer daemon may have states without a constant here.
type SandboxState int32

const (
	SandboxStateUnspecified SandboxState = iota
	SandboxStatePending
	SandboxStateReady
	SandboxStateFailed
	SandboxStateStopped
	SandboxStateDeleting
	SandboxStateDeleted
)

// An ExecState is where an exec is in its life. A newer daemon may have states without a constant here.
type ExecState int32

const (
	ExecStateUnspecified ExecState = iota
	ExecStateRunning
	ExecStateFinished
	ExecStateFailed
	ExecStateCancelled
)

// IsTerminal says whether the exec has ended.
func (s ExecState) IsTerminal() bool {
	return s == ExecStateFinished || s == ExecStateFailed || s == ExecStateCancelled
}

// A SandboxEventType says what happened. A newer daemon may have types without a constant here.
type SandboxEventType int32

const (
	SandboxEventTypeUnspecified SandboxEventType = iota
	SandboxEventTypeSandboxAccepted
	SandboxEventTypeSandboxPreparing
	SandboxEventTypeSandboxReady
	SandboxEventTypeSandboxFailed
	SandboxEventTypeSandboxStopRequested
	SandboxEventTypeSandboxStopped
	SandboxEventTypeSandboxDeleteRequested
	SandboxEventTypeSandboxDeleted
	SandboxEventTypeExecStarted
	SandboxEventTypeExecFinished
	SandboxEventTypeExecFailed
	SandboxEventTypeExecCancelled
	SandboxEventTypeCompanionContainerReady
	SandboxEventTypeCompanionContainerFailed
)

// PingInfo is the answer of the daemon to Ping.
type PingInfo struct {
	Version string
	Daemon  string
}

// A HealthcheckConfig says how a container is checked. What is nil has the engine's default.
type HealthcheckConfig struct {
	Test          []string // CMD or CMD-SHELL and its arguments, or NONE alone
	Interval      *time.Duration
	Timeout       *time.Duration
	Retries       *uint32
	StartPeriod   *time.Duration
	StartInterval *time.Duration
}

// A CompanionContainerSpec is a container next to a sandbox. Its name is its DNS name there.
type CompanionContainerSpec struct {
	Name               string
	Image              string
	Envs               map[string]string
	Healthcheck        *HealthcheckConfig
	Command            []string
	PostStartOnPrimary []string // shell commands for the sandbox, once the container is healthy
	CPULimit           string
	MemoryLimit        string
	DiskLimit          string
}

// A MountSpec makes a path of this machine visible in a sandbox.
type MountSpec struct {
	Source   string
	Target   string
	Writable bool
}

// A CopySpec copies a path of this machine into a sandbox.
type CopySpec struct {
	Source          string
	Target          string
	ExcludePatterns []string
}

// A PortMapping publishes a port of a sandbox. Protocol is "tcp", "udp" or "sctp"; empty means tcp.
type PortMapping struct {
	ContainerPort uint32
	HostPort      uint32
	Protocol      string
}

// A SandboxHandle is the state of a sandbox at one moment. Sandbox.Status has all that the daemon knows of it.
type SandboxHandle struct {
	SandboxID           string
	State               SandboxState
	LastEventSequence   uint64
	CompanionContainers []CompanionContainerSpec
	Labels              map[string]string
	CreatedAt           time.Time
	Image               string
	ErrorCode           *string
	ErrorMessage        *string
	StateChangedAt      *time.Time
}

// A DeleteSandboxesResult says which sandboxes matched.
type DeleteSandboxesResult struct {
	DeletedSandboxIDs []string
	DeletedCount      uint32
}

// An ExecHandle is the state of an exec at one moment. ExitCode is nil while it runs.
type ExecHandle struct {
	ExecID            string
	SandboxID         string
	State             ExecState
	Command           []string
	Cwd               string
	EnvOverrides      map[string]string
	ExitCode          *int32
	Error             *string
	LastEventSequence uint64
	StdoutLogPath     *string
	StderrLogPath     *string
}

// SandboxPhaseDetails belong to an event of the sandbox itself.
type SandboxPhaseDetails struct {
	Phase        *string
	ErrorCode    *string
	ErrorMessage *string
	Reason       *string
}

// ExecEventDetails belong to an event of an exec.
type ExecEventDetails struct {
	ExecID       string
	ExitCode     *int32
	ExecState    *ExecState
	ErrorCode    *string
	ErrorMessage *string
}

// CompanionContainerEventDetails belong to an event of a service or companion.
type CompanionContainerEventDetails struct {
	Name         string
	ErrorCode    *string
	ErrorMessage *string
}

// A SandboxEvent is one entry of the history of a sandbox. At most one of its details is set.
type SandboxEvent struct {
	EventID            string
	Sequence           uint64
	SandboxID          string
	EventType          SandboxEventType
	OccurredAt         time.Time
	Replay             bool
	Snapshot           bool
	SandboxState       *SandboxState
	SandboxPhase       *SandboxPhaseDetails
	Exec               *ExecEventDetails
	CompanionContainer *CompanionContainerEventDetails
}

// An EventOrError has one of both. An error is the last one of its channel.
type EventOrError struct {
	Event *SandboxEvent
	Err   error
}

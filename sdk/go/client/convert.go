// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/1996fanrui/agents-sandbox/api/generated/agboxv1"
	"github.com/1996fanrui/agents-sandbox/sdk/go/rawclient"
)

func unexpected(format string, arguments ...any) error {
	return rawclient.NewSandboxClientError("unexpected answer of the daemon: "+fmt.Sprintf(format, arguments...), nil)
}

// present returns nil for what the wire has as zero.
func present[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}

func filled(values map[string]string) map[string]string {
	if values == nil {
		return map[string]string{}
	}
	return values
}

func toSandboxHandle(sandbox *agboxv1.SandboxHandle) (SandboxHandle, error) {
	if sandbox == nil {
		return SandboxHandle{}, unexpected("it has no sandbox")
	}
	handle := SandboxHandle{
		SandboxID:           sandbox.GetSandboxId(),
		State:               SandboxState(sandbox.GetState()),
		LastEventSequence:   sandbox.GetLastEventSequence(),
		CompanionContainers: []CompanionContainerSpec{},
		Labels:              filled(sandbox.GetLabels()),
		Image:               sandbox.GetImage(),
		ErrorCode:           present(sandbox.GetErrorCode()),
		ErrorMessage:        present(sandbox.GetErrorMessage()),
		StateChangedAt:      toTime(sandbox.GetStateChangedAt()),
	}
	if created := toTime(sandbox.GetCreatedAt()); created != nil {
		handle.CreatedAt = *created
	}
	for _, container := range sandbox.GetCompanionContainers() {
		handle.CompanionContainers = append(handle.CompanionContainers, toCompanion(container))
	}
	return handle, nil
}

func toTime(time *timestamppb.Timestamp) *time.Time {
	if time == nil {
		return nil
	}
	converted := time.AsTime()
	return &converted
}

func toExecHandle(exec *agboxv1.ExecStatus) ExecHandle {
	handle := ExecHandle{
		ExecID:            exec.GetExecId(),
		SandboxID:         exec.GetSandboxId(),
		State:             ExecState(exec.GetState()),
		Command:           exec.GetCommand(),
		Cwd:               exec.GetCwd(),
		EnvOverrides:      filled(exec.GetEnvOverrides()),
		Error:             present(exec.GetError()),
		LastEventSequence: exec.GetLastEventSequence(),
		StdoutLogPath:     present(exec.GetStdoutLogPath()),
		StderrLogPath:     present(exec.GetStderrLogPath()),
	}
	if handle.State.IsTerminal() {
		code := exec.GetExitCode()
		handle.ExitCode = &code
	}
	return handle
}

// toExecSnapshot refuses an exec from which a wait could not continue without a gap.
func toExecSnapshot(response *agboxv1.GetExecResponse) (ExecHandle, error) {
	if response.GetExec() == nil {
		return ExecHandle{}, unexpected("it has no exec")
	}
	handle := toExecHandle(response.GetExec())
	if handle.LastEventSequence == 0 {
		return ExecHandle{}, unexpected("exec %s has no last_event_sequence", handle.ExecID)
	}
	return handle, nil
}

func toSandboxEvent(event *agboxv1.SandboxEvent) (SandboxEvent, error) {
	if event.GetOccurredAt() == nil {
		return SandboxEvent{}, unexpected("event %q has no occurred_at", event.GetEventId())
	}
	converted := SandboxEvent{
		EventID:      event.GetEventId(),
		Sequence:     event.GetSequence(),
		SandboxID:    event.GetSandboxId(),
		EventType:    SandboxEventType(event.GetEventType()),
		OccurredAt:   event.GetOccurredAt().AsTime(),
		Replay:       event.GetReplay(),
		Snapshot:     event.GetSnapshot(),
		SandboxState: present(SandboxState(event.GetSandboxState())),
	}
	if phase := event.GetSandboxPhase(); phase != nil {
		converted.SandboxPhase = &SandboxPhaseDetails{
			Phase:        present(phase.GetPhase()),
			ErrorCode:    present(phase.GetErrorCode()),
			ErrorMessage: present(phase.GetErrorMessage()),
			Reason:       present(phase.GetReason()),
		}
	}
	if exec := event.GetExec(); exec != nil {
		converted.Exec = &ExecEventDetails{
			ExecID:       exec.GetExecId(),
			ExitCode:     present(exec.GetExitCode()),
			ExecState:    present(ExecState(exec.GetExecState())),
			ErrorCode:    present(exec.GetErrorCode()),
			ErrorMessage: present(exec.GetErrorMessage()),
		}
		if converted.EventType == SandboxEventTypeExecFinished {
			code := exec.GetExitCode()
			converted.Exec.ExitCode = &code
		}
	}
	if container := event.GetCompanionContainer(); container != nil {
		converted.CompanionContainer = &CompanionContainerEventDetails{
			Name:         container.GetName(),
			ErrorCode:    present(container.GetErrorCode()),
			ErrorMessage: present(container.GetErrorMessage()),
		}
	}
	return converted, nil
}

func toCompanion(container *agboxv1.CompanionContainerSpec) CompanionContainerSpec {
	converted := CompanionContainerSpec{
		Name:               container.GetName(),
		Image:              container.GetImage(),
		Envs:               filled(container.GetEnvs()),
		Command:            container.GetCommand(),
		PostStartOnPrimary: container.GetPostStartOnPrimary(),
		CPULimit:           container.GetCpuLimit(),
		MemoryLimit:        container.GetMemoryLimit(),
		DiskLimit:          container.GetDiskLimit(),
	}
	if check := container.GetHealthcheck(); check != nil {
		converted.Healthcheck = &HealthcheckConfig{
			Test:          check.GetTest(),
			Interval:      toDuration(check.GetInterval()),
			Timeout:       toDuration(check.GetTimeout()),
			Retries:       present(check.GetRetries()),
			StartPeriod:   toDuration(check.GetStartPeriod()),
			StartInterval: toDuration(check.GetStartInterval()),
		}
	}
	return converted
}

func fromCompanion(container CompanionContainerSpec) *agboxv1.CompanionContainerSpec {
	converted := &agboxv1.CompanionContainerSpec{
		Name:               container.Name,
		Image:              container.Image,
		Envs:               container.Envs,
		Command:            container.Command,
		PostStartOnPrimary: container.PostStartOnPrimary,
		CpuLimit:           container.CPULimit,
		MemoryLimit:        container.MemoryLimit,
		DiskLimit:          container.DiskLimit,
	}
	if check := container.Healthcheck; check != nil {
		converted.Healthcheck = &agboxv1.HealthcheckConfig{
			Test:          check.Test,
			Interval:      fromDuration(check.Interval),
			Timeout:       fromDuration(check.Timeout),
			StartPeriod:   fromDuration(check.StartPeriod),
			StartInterval: fromDuration(check.StartInterval),
		}
		if check.Retries != nil {
			converted.Healthcheck.Retries = *check.Retries
		}
	}
	return converted
}

func toDuration(duration *durationpb.Duration) *time.Duration {
	if duration == nil {
		return nil
	}
	converted := duration.AsDuration()
	return &converted
}

func fromDuration(duration *time.Duration) *durationpb.Duration {
	if duration == nil {
		return nil
	}
	return durationpb.New(*duration)
}

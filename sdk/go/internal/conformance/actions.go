// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	sdk "github.com/1996fanrui/agents-sandbox/sdk/go/client"
)

// parameters are those of all actions.
type parameters struct {
	Name         string            `json:"name"`
	SandboxID    string            `json:"sandbox_id"`
	ExecID       string            `json:"exec_id"`
	Image        string            `json:"image"`
	Labels       map[string]string `json:"labels"`
	Command      []string          `json:"command"`
	State        string            `json:"state"`
	Cwd          string            `json:"cwd"`
	Env          map[string]string `json:"env"`
	User         string            `json:"user"`
	Timeout      float64           `json:"timeout_seconds"`
	Rows         uint32            `json:"rows"`
	Columns      uint32            `json:"columns"`
	Input        string            `json:"input"`
	Path         string            `json:"path"`
	Text         string            `json:"text"`
	File         string            `json:"file"`
	FromSequence uint64            `json:"from_sequence"`
	Count        int               `json:"count"`
	Until        string            `json:"until"`
	Prefix       string            `json:"prefix"`
}

type action func(context.Context, *runner, parameters) (any, error)

type object = map[string]any

var actions map[string]action

func init() {
	actions = map[string]action{ // some of them use the table of all
		"create": create,
		"stop": func(ctx context.Context, r *runner, with parameters) (any, error) {
			box := r.client.Sandbox(with.SandboxID)
			return moved(ctx, box, box.Stop(ctx))
		},
		"resume": func(ctx context.Context, r *runner, with parameters) (any, error) {
			box := r.client.Sandbox(with.SandboxID)
			return moved(ctx, box, box.Resume(ctx))
		},
		"delete": func(ctx context.Context, r *runner, with parameters) (any, error) {
			box := r.client.Sandbox(with.SandboxID)
			return moved(ctx, box, box.Delete(ctx))
		},
		"wait":          wait,
		"run":           runCommand,
		"start":         start,
		"output":        output,
		"wait_exec":     waitExec,
		"cancel":        cancel,
		"terminal":      terminal,
		"upload_text":   upload,
		"download_text": download,
		"events":        events,
		"await_output":  awaitOutput,
		"join":          join,
		"kill_daemon": func(_ context.Context, r *runner, _ parameters) (any, error) {
			return nil, r.ask("kill_daemon")
		},
		"start_daemon": func(_ context.Context, r *runner, _ parameters) (any, error) {
			return nil, r.ask("start_daemon")
		},
		"many": many,
	}
}

// moved returns the sandbox after an operation.
func moved(ctx context.Context, box *sdk.Sandbox, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	status, err := box.Status(ctx)
	return object{
		"sandbox_id": status.GetSandboxId(), "state": sdk.SandboxState(status.GetState()).String(),
		"image": status.GetImage(), "labels": status.GetLabels(),
	}, err
}

func create(ctx context.Context, r *runner, with parameters) (any, error) {
	options := []sdk.CreateSandboxOption{
		sdk.WithSandboxID(with.SandboxID), sdk.WithImage(with.Image), sdk.WithLabels(with.Labels),
	}
	if with.Command != nil {
		options = append(options, sdk.WithCommand(with.Command...))
	}
	box, err := r.client.Create(ctx, options...)
	if err != nil {
		return nil, err
	}
	return moved(ctx, box, nil)
}

func wait(ctx context.Context, r *runner, with parameters) (any, error) {
	for state := sdk.SandboxStatePending; state <= sdk.SandboxStateDeleted; state++ {
		if state.String() == with.State {
			box := r.client.Sandbox(with.SandboxID)
			return moved(ctx, box, box.Wait(ctx, state))
		}
	}
	return nil, fmt.Errorf("there is no state %s", with.State)
}

func toObject(result *sdk.Result) object {
	return object{
		"stdout": string(result.Stdout), "stderr": string(result.Stderr), "stdout_bytes": len(result.Stdout),
		"exit_code": result.ExitCode, "state": result.State.String(), "error_code": result.ErrorCode,
	}
}

func command(with parameters) sdk.Command {
	return sdk.Command{
		Args: with.Command, Dir: with.Cwd, Env: with.Env, User: with.User, ExecID: with.ExecID,
		Timeout: time.Duration(with.Timeout * float64(time.Second)),
	}
}

func runCommand(ctx context.Context, r *runner, with parameters) (any, error) {
	result, err := r.client.Sandbox(with.SandboxID).RunCommand(ctx, command(with))
	if err != nil {
		return nil, err
	}
	return toObject(result), nil
}

func start(ctx context.Context, r *runner, with parameters) (any, error) {
	exec, err := r.client.Sandbox(with.SandboxID).Start(ctx, command(with))
	if err != nil {
		return nil, err
	}
	status, err := exec.Status(ctx)
	return object{"exec_id": exec.ID(), "state": sdk.ExecState(status.GetState()).String()}, err
}

func output(ctx context.Context, r *runner, with parameters) (any, error) {
	exec := r.client.Exec(with.ExecID)
	stdout, stderr := exec.Stdout(ctx), exec.Stderr(ctx)
	defer stdout.Close()
	defer stderr.Close()
	out, errOut := io.ReadAll(stdout)
	messages, errErr := io.ReadAll(stderr)
	return object{"stdout": string(out), "stderr": string(messages)}, errors.Join(errOut, errErr)
}

func waitExec(ctx context.Context, r *runner, with parameters) (any, error) {
	result, err := r.client.Exec(with.ExecID).Wait(ctx)
	if err != nil {
		return nil, err
	}
	return toObject(result), nil
}

func cancel(ctx context.Context, r *runner, with parameters) (any, error) {
	result, err := r.client.Exec(with.ExecID).Cancel(ctx)
	if err != nil {
		return nil, err
	}
	return toObject(result), nil
}

func terminal(ctx context.Context, r *runner, with parameters) (any, error) {
	exec, err := r.client.Sandbox(with.SandboxID).Start(ctx, sdk.Command{
		Args: with.Command, Terminal: &sdk.Terminal{Rows: with.Rows, Columns: with.Columns},
	})
	if err != nil {
		return nil, err
	}
	printed, begin := bytes.Buffer{}, uint64(0)
	session := exec.Attach(ctx, sdk.AttachOptions{Stdout: &printed, StdoutOffset: &begin})
	if _, err := io.WriteString(session, with.Input); err != nil {
		return nil, err
	}
	result, err := session.Wait()
	if err != nil {
		return nil, err
	}
	return object{"exit_code": result.ExitCode, "output": printed.String()}, nil
}

func upload(ctx context.Context, r *runner, with parameters) (any, error) {
	return nil, r.client.Sandbox(with.SandboxID).WriteFile(ctx, with.Path, []byte(with.Text), 0o644)
}

func download(ctx context.Context, r *runner, with parameters) (any, error) {
	directory, err := os.MkdirTemp("", "agbox-conformance-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(directory)
	box := r.client.Sandbox(with.SandboxID)
	if _, err := box.CopyOut(ctx, with.Path, directory, sdk.CopyOptions{}); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(directory, path.Base(with.Path), with.File))
	return object{"text": string(text)}, err
}

func events(ctx context.Context, r *runner, with parameters) (any, error) {
	types, sequences, isGapless := []string{}, []uint64{}, true
	next := with.FromSequence
	for event, err := range r.client.Sandbox(with.SandboxID).Events(ctx, sdk.WithFromSequence(with.FromSequence)) {
		if err != nil {
			return nil, err
		}
		next++
		isGapless = isGapless && event.Sequence == next
		types, sequences = append(types, event.EventType.String()), append(sequences, event.Sequence)
		if len(types) == with.Count || event.EventType.String() == with.Until {
			break
		}
	}
	return object{"types": types, "sequences": sequences, "gapless": isGapless}, nil
}

// A background is an action that goes on while later steps run.
type background struct {
	done    chan struct{}
	outcome any
	err     error
	exec    string // of a run
}

func (r *runner) start(step step) error {
	ctx, stop := context.WithTimeout(context.Background(), stepTimeout)
	running := &background{done: make(chan struct{})}
	r.background[step.Background] = running
	if step.Do == "run" { // await_output needs its ID
		running.exec = fmt.Sprintf("%s-%s", r.variables["prefix"], step.Background)
		step.With = append([]byte(`{"exec_id": "`+running.exec+`", `), bytes.TrimLeft(step.With, "{ \n")...)
	}
	go func() {
		defer stop()
		defer close(running.done)
		running.outcome, running.err = r.perform(ctx, step)
	}()
	return nil
}

func join(_ context.Context, r *runner, with parameters) (any, error) {
	running := r.background[with.Name]
	<-running.done
	return running.outcome, running.err
}

func awaitOutput(ctx context.Context, r *runner, with parameters) (any, error) {
	running := r.background[with.Name]
	for event, err := range r.client.AllEvents(ctx, sdk.AllEventsOptions{
		FromOldest: true, Types: []sdk.SandboxEventType{sdk.SandboxEventTypeExecStarted},
	}) {
		if err != nil {
			return nil, err
		}
		if event.Event != nil && event.Event.Exec.ExecID == running.exec {
			break
		}
	}
	stdout := r.client.Exec(running.exec).Stdout(ctx)
	defer stdout.Close()
	text := make([]byte, len(with.Text))
	if _, err := io.ReadFull(stdout, text); err != nil {
		return nil, err
	}
	if string(text) != with.Text {
		return nil, fmt.Errorf("expected %q, got %q", with.Text, text)
	}
	return nil, nil
}

func many(ctx context.Context, r *runner, with parameters) (any, error) {
	outputs, failures := make([]string, with.Count), make([]error, with.Count)
	var group sync.WaitGroup
	for i := range with.Count {
		group.Go(func() { outputs[i], failures[i] = one(ctx, r, with, i) })
	}
	group.Wait()
	ran := 0
	for _, text := range outputs {
		if text == outputs[0] {
			ran++
		}
	}
	return object{"stdout": outputs[0], "ran": ran}, errors.Join(failures...)
}

func one(ctx context.Context, r *runner, with parameters, i int) (string, error) {
	box, err := r.client.Create(ctx, sdk.WithImage(with.Image), sdk.WithSandboxID(fmt.Sprintf("%s-%d", with.Prefix, i)))
	if err != nil {
		return "", err
	}
	result, err := box.Run(ctx, with.Command...)
	if err != nil {
		return "", errors.Join(err, box.Delete(ctx))
	}
	return strings.Clone(string(result.Stdout)), box.Delete(ctx)
}

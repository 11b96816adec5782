// SPDX-License-Identifier: Apache-2.0

//go:build daemon

package client_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/1996fanrui/agents-sandbox/sdk/go/client"
)

// Tests with a real daemon, which tests/e2e/test_go_sdk.py starts, and that has the image debian:12.

// ask has the Python test do what a client cannot do.
var ask = func() func(*testing.T, string) {
	answers := bufio.NewScanner(os.Stdin)
	return func(t *testing.T, what string) {
		fmt.Println("\nask", what)
		if !answers.Scan() {
			t.Errorf("no answer to %s", what)
		}
	}
}()

func realClient(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func newBox(t *testing.T, options ...client.CreateSandboxOption) *client.Sandbox {
	t.Helper()
	box, err := realClient(t).Create(t.Context(), append(options, client.WithImage("debian:12"))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Delete(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return box
}

// printed returns what a function writes to stdout.
func printed(t *testing.T, run func() error) string {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = writer
	failed := run()
	os.Stdout = stdout
	text := []byte{}
	if err = writer.Close(); err == nil {
		text, err = io.ReadAll(reader)
	}
	if err := errors.Join(failed, err, reader.Close()); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestExamples(t *testing.T) {
	ctx, c, box := t.Context(), realClient(t), newBox(t)
	directory := t.TempDir()
	for _, example := range []struct {
		name string
		run  func() error
		want string
	}{
		{"run", func() error { return exampleRun(ctx) }, "hello from agbox\n3\n"},
		{"command", func() error { return exampleCommand(ctx, box) }, "a\nb\n/tmp\nfast\n"},
		{"output", func() error { return exampleOutput(ctx, box) }, "got one\ngot two\nFINISHED\n"},
		{"terminal", func() error { return exampleTerminal(ctx, box) }, "code 5\n"},
		{"files", func() error { return exampleFiles(ctx, box, directory) }, "text\n"},
		{"events", func() error { return exampleEvents(ctx, box) }, "1 SANDBOX_ACCEPTED\n2 SANDBOX_PREPARING\n3 SANDBOX_READY\n"},
		{"errors", func() error { return exampleErrors(ctx, c) }, "there is no none-such\n"},
		{"handles", func() error { return exampleHandles(ctx, c) }, "FINISHED 0\n"},
	} {
		if text := printed(t, example.run); !strings.HasSuffix(text, example.want) {
			t.Errorf("%s: %q", example.name, text)
		}
	}
}

// A restartingReader has the daemon killed and started again in the middle.
type restartingReader struct {
	*bytes.Reader
	t    *testing.T
	once sync.Once
}

func (r *restartingReader) Read(into []byte) (int, error) {
	if r.Len() < int(r.Size())/2 {
		r.once.Do(func() {
			ask(r.t, "kill_daemon")
			ask(r.t, "start_daemon")
		})
	}
	return r.Reader.Read(into)
}

func TestInputAndOutputAreCompleteAcrossAKillOfTheDaemon(t *testing.T) {
	box := newBox(t)
	input := make([]byte, 4<<20)
	if _, err := rand.Read(input); err != nil {
		t.Fatal(err)
	}
	result, err := box.RunCommand(t.Context(), client.Command{
		Args: []string{"sh", "-c", "cat; echo end >&2; exit 4"}, Stdin: &restartingReader{Reader: bytes.NewReader(input), t: t},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(result.Stdout, input) || string(result.Stderr) != "end\n" || result.ExitCode != 4 || result.IsTruncated {
		t.Errorf("%d bytes, %q, exit code %d", len(result.Stdout), result.Stderr, result.ExitCode)
	}
	if exit := (*client.ExitError)(nil); !errors.As(result.Err(), &exit) || exit.ExitCode != 4 {
		t.Errorf("%v", result.Err())
	}
}

func TestACommandThatDoesNotReadItsInputIsNoError(t *testing.T) {
	box := newBox(t)
	for range 20 { // it may end before, during and after a write
		result, err := box.RunCommand(t.Context(), client.Command{
			Args: []string{"sh", "-c", "echo begin; exit 3"}, Stdin: bytes.NewReader(make([]byte, 1<<20)),
		})
		if err != nil {
			t.Fatal(err)
		}
		if result.ExitCode != 3 || string(result.Stdout) != "begin\n" {
			t.Errorf("%d %q", result.ExitCode, result.Stdout)
		}
	}
}

func TestAnExecWithoutStdinTakesNoInput(t *testing.T) {
	exec, err := newBox(t).Start(t.Context(), client.Command{Args: []string{"sleep", "4569"}})
	if err != nil {
		t.Fatal(err)
	}
	var base *client.SandboxClientError
	if _, err := exec.Attach(t.Context(), client.AttachOptions{}).Wait(); !errors.As(err, &base) || base.Reason() != "EXEC_HAS_NO_INPUT" {
		t.Error(err)
	}
	if result, err := exec.Cancel(t.Context()); err != nil || result.State != client.ExecStateCancelled {
		t.Errorf("%v %v", result, err)
	}
}

func TestTheContextEndsTheCommandInTheSandbox(t *testing.T) {
	box := newBox(t)
	ctx, cancel := context.WithCancel(t.Context())
	begun := make(signalWriter)
	go func() {
		<-begun
		cancel()
	}()
	_, err := box.RunCommand(ctx, client.Command{
		Args: []string{"sh", "-c", "echo begun; exec sleep 4567"}, ExecID: box.ID() + "-long", Stdout: begun,
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	status, err := realClient(t).Exec(box.ID() + "-long").Status(t.Context())
	if err != nil || client.ExecState(status.GetState()) != client.ExecStateCancelled {
		t.Errorf("%v %v", status, err)
	}
	result, err := box.Run(t.Context(), "sh", "-c", "grep -l 45[6]7 /proc/[0-9]*/cmdline")
	if err != nil || len(result.Stdout) != 0 {
		t.Errorf("%s %v", result.Stdout, err)
	}
}

func TestFilesGoBothWays(t *testing.T) {
	ctx, box, here := t.Context(), newBox(t), t.TempDir()
	tree := filepath.Join(here, "tree")
	large := bytes.Repeat([]byte("0123456789abcdef"), 100_000)
	err := errors.Join(os.MkdirAll(filepath.Join(tree, "sub"), 0o750), os.WriteFile(filepath.Join(tree, "sub", "large"), large, 0o640),
		os.Symlink("sub/large", filepath.Join(tree, "link")))
	if err != nil {
		t.Fatal(err)
	}
	if copied, err := box.CopyIn(ctx, tree, "/workspace", client.CopyOptions{}); err != nil || copied.Entries != 4 || copied.Notes != 0 {
		t.Fatalf("%+v %v", copied, err)
	}
	if copied, err := box.CopyOut(ctx, "/workspace/tree", filepath.Join(here, "back"), client.CopyOptions{}); err != nil || copied.Entries != 4 {
		t.Fatalf("%+v %v", copied, err)
	}
	text, err := os.ReadFile(filepath.Join(here, "back", "link"))
	if err != nil || !bytes.Equal(text, large) {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if text, err := box.ReadFile(ctx, "/workspace/tree/sub/large"); err != nil || !bytes.Equal(text, large) {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if _, err := box.ReadFile(ctx, "/workspace/tree"); err == nil || !strings.Contains(err.Error(), "is not a file") {
		t.Error(err)
	}
	var base *client.SandboxClientError
	if _, err := box.ReadFile(ctx, "/workspace/none"); !errors.As(err, &base) || base.Reason() != "PATH_NOT_FOUND" {
		t.Error(err)
	}
	if err := box.WriteFile(ctx, "/proc/none", nil, 0o600); err == nil {
		t.Error("a file in /proc")
	}
	// A tar stream, from one path to another.
	stream := bytes.Buffer{}
	if _, err := box.CopyTarOut(ctx, "/workspace/tree/.", &stream, client.CopyOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := box.CopyTarIn(ctx, &stream, "/workspace/other", client.CopyOptions{}); err != nil {
		t.Fatal(err)
	}
	if text, err := box.ReadFile(ctx, "/workspace/other/sub/large"); err != nil || !bytes.Equal(text, large) {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := box.CopyOut(ctx, "/workspace/tree", here, client.CopyOptions{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestOperationsWithHandles(t *testing.T) {
	ctx, c := t.Context(), realClient(t)
	created, err := c.CreateSandbox(ctx, client.WithImage("debian:12"), client.WithSandboxID("go-handles"),
		client.WithLabels(map[string]string{"test": "handles"}), client.WithEnvs(map[string]string{"MODE": "box"}))
	if err != nil || created.State != client.SandboxStateReady || created.Labels["test"] != "handles" {
		t.Fatalf("%+v %v", created, err)
	}
	events := c.SubscribeSandboxEvents(ctx, "go-handles", client.WithFromSequence(created.LastEventSequence))
	running, err := c.CreateExec(ctx, "go-handles", []string{"sleep", "4568"}, client.WithExecID("go-running"))
	if err != nil || running.State != client.ExecStateRunning || running.ExitCode != nil || running.StdoutLogPath == nil {
		t.Fatalf("%+v %v", running, err)
	}
	active, err := c.ListActiveExecs(ctx, client.WithSandboxID("go-handles"))
	if err != nil || len(active) != 1 || active[0].ExecID != "go-running" {
		t.Errorf("%+v %v", active, err)
	}
	cancelled, err := c.CancelExec(ctx, "go-running")
	if err != nil || cancelled.State != client.ExecStateCancelled {
		t.Errorf("%+v %v", cancelled, err)
	}
	if terminal := (*client.ExecAlreadyTerminalError)(nil); !errors.As(func() error { _, err := c.CancelExec(ctx, "go-running"); return err }(), &terminal) {
		t.Error("a second cancel")
	}
	ran, err := c.Run(ctx, "go-handles", []string{"sh", "-c", "test $MODE = run && exit 7"},
		client.WithCwd("/"), client.WithEnvOverrides(map[string]string{"MODE": "run"}))
	if err != nil || ran.State != client.ExecStateFailed || *ran.ExitCode != 7 || ran.Cwd != "/" {
		t.Errorf("%+v %v", ran, err)
	}
	if stopped, err := c.StopSandbox(ctx, "go-handles"); err != nil || stopped.State != client.SandboxStateStopped {
		t.Errorf("%+v %v", stopped, err)
	}
	if resumed, err := c.ResumeSandbox(ctx, "go-handles"); err != nil || resumed.State != client.SandboxStateReady {
		t.Errorf("%+v %v", resumed, err)
	}
	if gone, err := c.DeleteSandboxes(ctx, map[string]string{"test": "handles"}); err != nil || gone.DeletedCount != 1 {
		t.Errorf("%+v %v", gone, err)
	}
	if last, err := c.GetSandbox(ctx, "go-handles"); err != nil || last.State != client.SandboxStateDeleted {
		t.Errorf("%+v %v", last, err)
	}
	listed, err := c.ListSandboxes(ctx, client.WithIncludeDeleted(true), client.WithLabelSelector(map[string]string{"test": "handles"}))
	if err != nil || len(listed) != 1 {
		t.Errorf("%+v %v", listed, err)
	}
	next := created.LastEventSequence
	for item := range events {
		if item.Err != nil {
			t.Fatal(item.Err)
		}
		if next++; item.Event.Sequence != next {
			t.Errorf("%d follows %d", item.Event.Sequence, next-1)
		}
		if item.Event.EventType == client.SandboxEventTypeSandboxDeleted {
			break
		}
	}
}

func TestLogsAndUsage(t *testing.T) {
	ctx := t.Context()
	box := newBox(t, client.WithCommand("sh", "-c", "echo up; exec sleep 86400"))
	for part, err := range box.Logs(ctx, client.LogOptions{Follow: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if string(part.GetData()) == "up\n" {
			break
		}
	}
	stats, err := box.Stats(ctx)
	if err != nil || len(stats.GetContainers()) != 1 {
		t.Errorf("%v %v", stats, err)
	}
	for stats, err := range box.WatchStats(ctx, time.Second) {
		if err != nil || !stats.GetContainers()[0].GetRunning() {
			t.Errorf("%v %v", stats, err)
		}
		break
	}
	status, err := box.Status(ctx)
	if err != nil || !slices.Equal(status.GetWarnings(), nil) {
		t.Errorf("%v %v", status, err)
	}
}

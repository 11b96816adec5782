// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/1996fanrui/agents-sandbox/sdk/go/client"
)

// The examples of docs/sdk_go_usage.md. TestTheDocumentShowsTheExamples compares both, TestExamples runs them.

func exampleRun(ctx context.Context) error {
	c, err := client.New()
	if err != nil {
		return err
	}
	defer c.Close()

	box, err := c.Create(ctx, client.WithImage("debian:12"))
	if err != nil {
		return err
	}
	defer box.Delete(context.WithoutCancel(ctx))

	result, err := box.Run(ctx, "sh", "-c", "echo hello from $(whoami); exit 3")
	if err != nil {
		return err
	}
	fmt.Printf("%s%d\n", result.Stdout, result.ExitCode)
	return nil
}

func exampleCommand(ctx context.Context, box *client.Sandbox) error {
	result, err := box.RunCommand(ctx, client.Command{
		Args:    []string{"sh", "-c", "sort; pwd; echo $MODE"},
		Dir:     "/tmp",
		Env:     map[string]string{"MODE": "fast"},
		Stdin:   strings.NewReader("b\na\n"),
		Stdout:  os.Stdout,
		Timeout: time.Minute,
	})
	if err != nil {
		return err
	}
	return result.Err()
}

func exampleOutput(ctx context.Context, box *client.Sandbox) error {
	exec, err := box.Start(ctx, client.Command{Args: []string{"sh", "-c", "echo one; echo two"}})
	if err != nil {
		return err
	}
	stdout := exec.Stdout(ctx)
	defer stdout.Close()
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		fmt.Println("got", lines.Text())
	}
	if err := lines.Err(); err != nil {
		return err
	}
	result, err := exec.Wait(ctx)
	if err != nil {
		return err
	}
	fmt.Println(result.State)
	return nil
}

func exampleTerminal(ctx context.Context, box *client.Sandbox) error {
	shell, err := box.Start(ctx, client.Command{
		Args:     []string{"sh"},
		Terminal: &client.Terminal{Rows: 24, Columns: 80},
	})
	if err != nil {
		return err
	}
	session := shell.Attach(ctx, client.AttachOptions{Stdout: os.Stdout})
	if _, err := fmt.Fprintln(session, "exit 5"); err != nil {
		return err
	}
	result, err := session.Wait()
	if err != nil {
		return err
	}
	fmt.Println("code", result.ExitCode)
	return nil
}

func exampleFiles(ctx context.Context, box *client.Sandbox, directory string) error {
	if err := box.WriteFile(ctx, "/workspace/note.txt", []byte("text"), 0o644); err != nil {
		return err
	}
	if _, err := box.CopyOut(ctx, "/workspace", directory, client.CopyOptions{}); err != nil {
		return err
	}
	text, err := os.ReadFile(directory + "/workspace/note.txt")
	fmt.Printf("%s\n", text)
	return err
}

func exampleEvents(ctx context.Context, box *client.Sandbox) error {
	for event, err := range box.Events(ctx) {
		if err != nil {
			return err
		}
		fmt.Println(event.Sequence, event.EventType)
		if event.EventType == client.SandboxEventTypeSandboxReady {
			break
		}
	}
	return nil
}

func exampleErrors(ctx context.Context, c *client.Client) error {
	_, err := c.Sandbox("none-such").Run(ctx, "true")
	if notFound := (*client.SandboxNotFoundError)(nil); errors.As(err, &notFound) {
		fmt.Println("there is no", notFound.SandboxID)
		return nil
	}
	return err
}

func exampleHandles(ctx context.Context, c *client.Client) error {
	sandbox, err := c.CreateSandbox(ctx,
		client.WithImage("debian:12"),
		client.WithLabels(map[string]string{"team": "sdk"}),
	)
	if err != nil {
		return err
	}
	exec, err := c.Run(ctx, sandbox.SandboxID, []string{"sh", "-c", "echo hello"})
	if err != nil {
		return err
	}
	fmt.Println(exec.State, *exec.ExitCode)
	_, err = c.DeleteSandboxes(ctx, map[string]string{"team": "sdk"})
	return err
}

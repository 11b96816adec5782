// SPDX-License-Identifier: Apache-2.0

// Conformance executes the table in tests/conformance with the Go SDK: conformance TABLE PREFIX IMAGE [--long]. See the
// README there.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/1996fanrui/agents-sandbox/sdk/go/client"
	"github.com/1996fanrui/agents-sandbox/sdk/go/rawclient"
)

// stepTimeout is exceeded only if something is broken.
const stepTimeout = 120 * time.Second

type step struct {
	RPC        string            `json:"rpc"`
	Request    json.RawMessage   `json:"request"`
	Requests   []json.RawMessage `json:"requests"`
	Response   any               `json:"response"`
	Stream     streamWanted      `json:"stream"`
	Do         string            `json:"do"`
	With       json.RawMessage   `json:"with"`
	Background string            `json:"background"`
	Expect     any               `json:"expect"`
	Error      map[string]any    `json:"error"`
	Save       map[string]string `json:"save"`
}

type streamWanted struct {
	Until    any   `json:"until"`
	Contains []any `json:"contains"`
	Joined   *struct {
		Field string `json:"field"`
		Text  string `json:"text"`
	} `json:"joined"`
}

type scenario struct {
	Name  string            `json:"name"`
	Long  bool              `json:"long"`
	Steps []json.RawMessage `json:"steps"`
}

type runner struct {
	client     *client.Client
	variables  map[string]string
	background map[string]*background
	answers    *bufio.Scanner
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) < 3 {
		return errors.New("usage: conformance TABLE PREFIX IMAGE [--long]")
	}
	text, err := os.ReadFile(arguments[0])
	if err != nil {
		return err
	}
	var table struct{ Scenarios []scenario }
	if err := json.Unmarshal(text, &table); err != nil {
		return err
	}
	c, err := client.New()
	if err != nil {
		return err
	}
	defer c.Close()
	r := &runner{
		client:     c,
		variables:  map[string]string{"prefix": arguments[1], "image": arguments[2]},
		background: map[string]*background{},
		answers:    bufio.NewScanner(os.Stdin),
	}
	for _, scenario := range table.Scenarios {
		if scenario.Long && !slices.Contains(arguments[3:], "--long") {
			continue
		}
		var problem any
		if err := r.run(scenario); err != nil {
			problem = err.Error()
		}
		if err := say(map[string]any{"scenario": scenario.Name, "error": problem}); err != nil {
			return err
		}
	}
	return nil
}

func say(message map[string]any) error { return json.NewEncoder(os.Stdout).Encode(message) }

// ask has the test do what a client cannot do.
func (r *runner) ask(what string) error {
	if err := say(map[string]any{"ask": what}); err != nil {
		return err
	}
	if !r.answers.Scan() {
		return fmt.Errorf("no answer to %s", what)
	}
	return nil
}

func (r *runner) run(scenario scenario) error {
	for number, text := range scenario.Steps {
		var step step
		if err := json.Unmarshal([]byte(r.replaced(string(text))), &step); err != nil {
			return fmt.Errorf("step %d: %w", number+1, err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
		err := r.step(ctx, step)
		cancel()
		if err != nil {
			return fmt.Errorf("step %d (%s%s): %w", number+1, step.RPC, step.Do, err)
		}
	}
	return nil
}

func (r *runner) replaced(text string) string {
	for name, value := range r.variables {
		quoted, _ := json.Marshal(value) // a string always has a JSON form
		text = strings.ReplaceAll(text, "${"+name+"}", strings.Trim(string(quoted), `"`))
	}
	return text
}

func (r *runner) step(ctx context.Context, step step) error {
	if step.Background != "" {
		return r.start(step)
	}
	outcome, err := r.perform(ctx, step)
	if step.Error != nil {
		return checkError(step.Error, err)
	}
	if err != nil {
		return err
	}
	if step.Expect != nil {
		if err := match(step.Expect, outcome); err != nil {
			return err
		}
	}
	for name, path := range step.Save {
		value, isText := at(outcome, path).(string)
		if !isText {
			return fmt.Errorf("the response has no %s", path)
		}
		r.variables[name] = value
	}
	return nil
}

// perform returns the outcome of an action, the response of a call, or the last message of a stream.
func (r *runner) perform(ctx context.Context, step step) (any, error) {
	if step.RPC != "" {
		return r.call(ctx, step)
	}
	action := actions[step.Do]
	if action == nil {
		return nil, fmt.Errorf("there is no action %q", step.Do)
	}
	var with parameters
	if step.With != nil {
		if err := json.Unmarshal(step.With, &with); err != nil {
			return nil, err
		}
	}
	outcome, err := action(ctx, r, with)
	if err != nil {
		return nil, err
	}
	return asJSON(outcome)
}

// asJSON gives a value the form that values of the table have.
func asJSON(value any) (any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var converted any
	return converted, json.Unmarshal(text, &converted)
}

func checkError(wanted map[string]any, err error) error {
	if err == nil {
		return fmt.Errorf("succeeded; expected the error %v", wanted)
	}
	found := map[string]any{"type": typeOf(err), "message": err.Error()}
	if base := (*client.SandboxClientError)(nil); errors.As(err, &base) {
		found["code"] = codeNames[base.Code()]
		found["reason"] = base.Reason()
	}
	describe(err, found)
	if err := match(wanted, found); err != nil {
		return fmt.Errorf("the error %v: %w", found, err)
	}
	return nil
}

func typeOf(err error) string {
	var (
		sandboxFailed *client.SandboxFailedError
		unreachable   *client.DaemonUnreachableError
		notFound      *rawclient.SandboxNotFoundError
		conflict      *rawclient.SandboxConflictError
		notReady      *rawclient.SandboxNotReadyError
		invalidState  *rawclient.SandboxInvalidStateError
		expired       *rawclient.SandboxSequenceExpiredError
		execNotFound  *rawclient.ExecNotFoundError
		terminal      *rawclient.ExecAlreadyTerminalError
		base          *rawclient.SandboxClientError
	)
	for _, one := range []struct {
		name  string
		found bool
	}{
		{"sandbox_failed", errors.As(err, &sandboxFailed)},
		{"unreachable", errors.As(err, &unreachable)},
		{"sandbox_not_found", errors.As(err, &notFound)},
		{"sandbox_conflict", errors.As(err, &conflict)},
		{"sandbox_not_ready", errors.As(err, &notReady)},
		{"sandbox_invalid_state", errors.As(err, &invalidState)},
		{"sequence_expired", errors.As(err, &expired)},
		{"exec_not_found", errors.As(err, &execNotFound)},
		{"exec_already_terminal", errors.As(err, &terminal)},
		{"refused", errors.As(err, &base)},
	} {
		if one.found {
			return one.name
		}
	}
	return err.Error()
}

// describe adds the fields of a typed error.
func describe(err error, found map[string]any) {
	if typed := (*rawclient.SandboxNotFoundError)(nil); errors.As(err, &typed) {
		found["sandbox_id"] = typed.SandboxID
	}
	if typed := (*rawclient.SandboxConflictError)(nil); errors.As(err, &typed) {
		found["sandbox_id"], found["exec_id"] = typed.SandboxID, typed.ExecID
	}
	if typed := (*rawclient.SandboxNotReadyError)(nil); errors.As(err, &typed) {
		found["sandbox_id"] = typed.SandboxID
	}
	if typed := (*rawclient.SandboxSequenceExpiredError)(nil); errors.As(err, &typed) {
		found["sandbox_id"] = typed.SandboxID
		if typed.FromSequence != nil {
			found["from_sequence"] = float64(*typed.FromSequence)
		}
	}
	if typed := (*rawclient.ExecNotFoundError)(nil); errors.As(err, &typed) {
		found["exec_id"] = typed.ExecID
	}
	if typed := (*rawclient.ExecAlreadyTerminalError)(nil); errors.As(err, &typed) {
		found["exec_id"] = typed.ExecID
	}
}

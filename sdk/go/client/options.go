// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/1996fanrui/agents-sandbox/api/generated/agboxv1"
)

const defaultCwd = "/workspace"

// Options of the calls. Some fit several calls, such as WithWait.
type (
	CreateSandboxOption interface{ applyCreateSandbox(*createSandbox) error }
	ListSandboxesOption interface {
		applyListSandboxes(*agboxv1.ListSandboxesRequest)
	}
	ListActiveExecsOption interface {
		applyListActiveExecs(*agboxv1.ListActiveExecsRequest)
	}
	WaitOption       interface{ applyWait(*bool) }
	CreateExecOption interface{ applyCreateExec(*createExec) error }
	RunOption        interface {
		CreateExecOption
		isRunOption()
	}
	SubscribeOption interface{ applySubscribe(*subscription) }
)

type createSandbox struct {
	message *agboxv1.CreateSandboxRequest
	wait    bool
	hasID   bool // of the caller
}

func newCreateSandbox(opts []CreateSandboxOption) (createSandbox, error) {
	request := createSandbox{
		message: &agboxv1.CreateSandboxRequest{CreateSpec: &agboxv1.CreateSpec{}},
		wait:    true,
	}
	for _, option := range opts {
		if err := option.applyCreateSandbox(&request); err != nil {
			return request, err
		}
	}
	if request.message.CreateSpec.Image == "" && len(request.message.ConfigYaml) == 0 {
		return request, errors.New("a sandbox needs an image: give WithImage or WithConfigYAML")
	}
	return request, nil
}

type createExec struct {
	message *agboxv1.CreateExecRequest
	wait    bool
}

type subscription struct {
	after           uint64
	includeSnapshot bool
}

type specOption func(*agboxv1.CreateSpec) error

func (o specOption) applyCreateSandbox(request *createSandbox) error {
	return o(request.message.CreateSpec)
}

func spec(set func(*agboxv1.CreateSpec)) CreateSandboxOption {
	return specOption(func(spec *agboxv1.CreateSpec) error {
		set(spec)
		return nil
	})
}

// WithImage sets the image of the sandbox.
func WithImage(image string) CreateSandboxOption {
	return specOption(func(spec *agboxv1.CreateSpec) error {
		if image == "" {
			return errors.New("image must not be empty")
		}
		spec.Image = image
		return nil
	})
}

type configYAML []byte

func (o configYAML) applyCreateSandbox(request *createSandbox) error {
	if len(o) == 0 {
		return errors.New("config_yaml must not be empty")
	}
	request.message.ConfigYaml = o
	return nil
}

// WithConfigYAML sets a YAML document with the settings of the sandbox. Other options override it.
func WithConfigYAML(document []byte) CreateSandboxOption { return configYAML(slices.Clone(document)) }

// WithMounts makes files and directories of this machine visible in the sandbox.
func WithMounts(mounts ...MountSpec) CreateSandboxOption {
	return spec(func(spec *agboxv1.CreateSpec) {
		spec.Mounts = nil
		for _, mount := range mounts {
			spec.Mounts = append(spec.Mounts,
				&agboxv1.MountSpec{Source: mount.Source, Target: mount.Target, Writable: mount.Writable})
		}
	})
}

// WithCopies copies files and directories of this machine into the sandbox when it is created.
func WithCopies(copies ...CopySpec) CreateSandboxOption {
	return spec(func(spec *agboxv1.CreateSpec) {
		spec.Copies = nil
		for _, one := range copies {
			spec.Copies = append(spec.Copies, &agboxv1.CopySpec{
				Source: one.Source, Target: one.Target, ExcludePatterns: slices.Clone(one.ExcludePatterns),
			})
		}
	})
}

// WithPorts publishes ports of the sandbox on 127.0.0.1.
func WithPorts(ports ...PortMapping) CreateSandboxOption {
	return specOption(func(spec *agboxv1.CreateSpec) error {
		spec.Ports = nil
		for _, port := range ports {
			protocol, isKnown := portProtocols[strings.ToLower(strings.TrimSpace(port.Protocol))]
			if !isKnown {
				return fmt.Errorf("unsupported port protocol %q; must be tcp, udp, or sctp", port.Protocol)
			}
			spec.Ports = append(spec.Ports, &agboxv1.PortMapping{
				ContainerPort: port.ContainerPort, HostPort: port.HostPort, Protocol: protocol,
			})
		}
		return nil
	})
}

var portProtocols = map[string]agboxv1.PortProtocol{
	"":     agboxv1.PortProtocol_PORT_PROTOCOL_TCP,
	"tcp":  agboxv1.PortProtocol_PORT_PROTOCOL_TCP,
	"udp":  agboxv1.PortProtocol_PORT_PROTOCOL_UDP,
	"sctp": agboxv1.PortProtocol_PORT_PROTOCOL_SCTP,
}

// WithCommand sets the main process of the sandbox. By default there is none.
func WithCommand(command ...string) CreateSandboxOption {
	return specOption(func(spec *agboxv1.CreateSpec) error {
		if len(command) == 0 {
			return errors.New("command: empty array is not allowed; omit WithCommand to use the default")
		}
		spec.Command = slices.Clone(command)
		return checkCommand("command", command)
	})
}

func checkCommand(field string, command []string) error {
	if at := slices.Index(command, ""); at >= 0 {
		return fmt.Errorf("%s[%d]: empty string entry is not allowed", field, at)
	}
	return nil
}

// WithBuiltinTools gives the sandbox tools of this machine, such as "git".
func WithBuiltinTools(tools ...string) CreateSandboxOption {
	return spec(func(spec *agboxv1.CreateSpec) { spec.BuiltinTools = slices.Clone(tools) })
}

// WithCompanionContainers starts containers next to the sandbox. It is ready without them.
func WithCompanionContainers(containers ...CompanionContainerSpec) CreateSandboxOption {
	return companions("companion_containers", containers,
		func(spec *agboxv1.CreateSpec, made []*agboxv1.CompanionContainerSpec) {
			spec.CompanionContainers = made
		})
}

// WithRequiredServices starts containers one after another; the sandbox is ready when all of them are healthy.
func WithRequiredServices(services ...CompanionContainerSpec) CreateSandboxOption {
	return companions("required_services", services,
		func(spec *agboxv1.CreateSpec, made []*agboxv1.CompanionContainerSpec) { spec.RequiredServices = made })
}

// WithOptionalServices starts containers in parallel with the sandbox. It is ready without them.
func WithOptionalServices(services ...CompanionContainerSpec) CreateSandboxOption {
	return companions("optional_services", services,
		func(spec *agboxv1.CreateSpec, made []*agboxv1.CompanionContainerSpec) { spec.OptionalServices = made })
}

func companions(
	field string, containers []CompanionContainerSpec,
	set func(*agboxv1.CreateSpec, []*agboxv1.CompanionContainerSpec),
) CreateSandboxOption {
	return specOption(func(spec *agboxv1.CreateSpec) error {
		var made []*agboxv1.CompanionContainerSpec
		for _, container := range containers {
			name := fmt.Sprintf("%s[%q].command", field, container.Name)
			if container.Command != nil && len(container.Command) == 0 {
				return fmt.Errorf("%s: empty array is not allowed; omit the field to use the default", name)
			}
			if err := checkCommand(name, container.Command); err != nil {
				return err
			}
			made = append(made, fromCompanion(container))
		}
		set(spec, made)
		return nil
	})
}

// WithLabels sets labels, by which sandboxes are listed and deleted.
func WithLabels(labels map[string]string) CreateSandboxOption {
	return spec(func(spec *agboxv1.CreateSpec) { spec.Labels = maps.Clone(labels) })
}

// WithEnvs sets the environment of the sandbox and of all its commands.
func WithEnvs(envs map[string]string) CreateSandboxOption {
	return spec(func(spec *agboxv1.CreateSpec) { spec.Envs = maps.Clone(envs) })
}

// WithIdleTTL stops the sandbox after this long without a running command. 0 means never; the default is the daemon's.
func WithIdleTTL(idle time.Duration) CreateSandboxOption {
	return specOption(func(spec *agboxv1.CreateSpec) error {
		if idle < 0 {
			return errors.New("idle_ttl must not be negative")
		}
		spec.IdleTtl = durationpb.New(idle)
		return nil
	})
}

// WithCPULimit limits CPUs, such as "1.5".
func WithCPULimit(limit string) CreateSandboxOption {
	return spec(func(spec *agboxv1.CreateSpec) { spec.CpuLimit = limit })
}

// WithMemoryLimit limits memory, such as "512m".
func WithMemoryLimit(limit string) CreateSandboxOption {
	return spec(func(spec *agboxv1.CreateSpec) { spec.MemoryLimit = limit })
}

// WithPrimaryDiskLimit limits the disk of the sandbox's own container, such as "10g".
func WithPrimaryDiskLimit(limit string) CreateSandboxOption {
	return spec(func(spec *agboxv1.CreateSpec) { spec.DiskLimit = limit })
}

// WithGPUs gives the sandbox the GPUs of this machine: "all", or "" for none.
func WithGPUs(gpus string) CreateSandboxOption {
	return spec(func(spec *agboxv1.CreateSpec) { spec.Gpus = gpus })
}

// WithoutEntrypoint ignores the entrypoint of the image, such as one that does not run its arguments.
func WithoutEntrypoint() CreateSandboxOption {
	return spec(func(spec *agboxv1.CreateSpec) { spec.BypassEntrypoint = true })
}

type sandboxIDOption string

// WithSandboxID chooses the ID of a new sandbox, or the sandbox whose execs are listed.
func WithSandboxID(id string) interface {
	CreateSandboxOption
	ListActiveExecsOption
} {
	return sandboxIDOption(id)
}

func (o sandboxIDOption) applyCreateSandbox(request *createSandbox) error {
	if o == "" {
		return errors.New("sandbox_id must not be empty")
	}
	request.message.SandboxId, request.hasID = string(o), true
	return nil
}

func (o sandboxIDOption) applyListActiveExecs(request *agboxv1.ListActiveExecsRequest) {
	id := string(o)
	request.SandboxId = &id
}

type waitOption bool

// WithWait says whether a call returns only when what it asked for is done.
func WithWait(wait bool) interface {
	CreateSandboxOption
	WaitOption
	CreateExecOption
} {
	return waitOption(wait)
}

func (o waitOption) applyCreateSandbox(request *createSandbox) error {
	request.wait = bool(o)
	return nil
}

func (o waitOption) applyWait(wait *bool) { *wait = bool(o) }

func (o waitOption) applyCreateExec(request *createExec) error {
	request.wait = bool(o)
	return nil
}

func waits(opts []WaitOption) bool {
	wait := true
	for _, option := range opts {
		option.applyWait(&wait)
	}
	return wait
}

type listOption func(*agboxv1.ListSandboxesRequest)

func (o listOption) applyListSandboxes(request *agboxv1.ListSandboxesRequest) { o(request) }

// WithIncludeDeleted also lists deleted sandboxes.
func WithIncludeDeleted(include bool) ListSandboxesOption {
	return listOption(func(request *agboxv1.ListSandboxesRequest) { request.IncludeDeleted = include })
}

// WithLabelSelector lists only sandboxes that have all of these labels.
func WithLabelSelector(selector map[string]string) ListSandboxesOption {
	return listOption(func(request *agboxv1.ListSandboxesRequest) { request.LabelSelector = maps.Clone(selector) })
}

type execOption func(*createExec) error

func (o execOption) applyCreateExec(request *createExec) error { return o(request) }

type runOption struct{ execOption }

func (runOption) isRunOption() {}

// WithExecID chooses the ID of a new exec.
func WithExecID(id string) CreateExecOption {
	return execOption(func(request *createExec) error {
		if id == "" {
			return errors.New("exec_id must not be empty")
		}
		request.message.ExecId = id
		return nil
	})
}

// WithCwd sets the working directory of a command. The default is /workspace.
func WithCwd(cwd string) RunOption {
	return runOption{func(request *createExec) error {
		request.message.Cwd = cwd
		return nil
	}}
}

// WithEnvOverrides adds to the environment of a command, or replaces variables of it.
func WithEnvOverrides(envs map[string]string) RunOption {
	return runOption{func(request *createExec) error {
		request.message.EnvOverrides = maps.Clone(envs)
		return nil
	}}
}

type subscribeOption func(*subscription)

func (o subscribeOption) applySubscribe(request *subscription) { o(request) }

// WithFromSequence delivers only events after this one. The default, 0, means all.
func WithFromSequence(sequence uint64) SubscribeOption {
	return subscribeOption(func(request *subscription) { request.after = sequence })
}

// WithIncludeCurrentSnapshot begins with the current state, as events with Snapshot set.
func WithIncludeCurrentSnapshot(include bool) SubscribeOption {
	return subscribeOption(func(request *subscription) { request.includeSnapshot = include })
}

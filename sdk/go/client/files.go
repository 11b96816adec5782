// SPDX-License-Identifier: Apache-2.0

package client

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/1996fanrui/agents-sandbox/api/generated/agboxv1"
	"github.com/1996fanrui/agents-sandbox/sdk/go/rawclient"
)

// CopyOptions say how files are copied.
type CopyOptions struct {
	// Root of the sandbox reads or writes. By default its runtime user does, who owns the files.
	AsRoot bool
	// Bounds of what a sandbox, which can send much more than it stores, makes CopyOut write; 0 means 2 million entries and
	// 64 GiB of files.
	MaxEntries int
	MaxBytes   int64
}

const (
	defaultMaxEntries = 2_000_000
	defaultMaxBytes   = 64 << 30
	maxReadFile       = 64 << 20
	maxAfterArchive   = 1 << 20 // tar programs fill up with zeros
)

// A CopyResult says what was copied.
type CopyResult struct {
	Entries, Bytes uint64
	// How many entries were left out (FIFOs, sockets, devices) or changed while they were read, and the first of them,
	// for people.
	Notes     uint64
	FirstNote string
}

// CopyIn copies a file or a directory of this machine to a path of the sandbox, with the rules of `docker cp`: into a
// directory that exists, otherwise as that path. A source that ends with "/." is the content of a directory. On an
// error, each file is complete or unchanged, and a tree may be incomplete.
func (s *Sandbox) CopyIn(ctx context.Context, source, target string, options CopyOptions) (CopyResult, error) {
	packer := packer{}
	result, err := s.send(ctx, target, agboxv1.CopyPlacement_COPY_PLACEMENT_ROOT, options, func(w io.Writer) error {
		return packer.pack(ctx, source, w)
	})
	result.Notes, result.FirstNote = packer.notes, packer.firstNote
	return result, err
}

// CopyTarIn unpacks a tar stream into a directory of the sandbox, which is created if it is missing.
func (s *Sandbox) CopyTarIn(ctx context.Context, archive io.Reader, target string, options CopyOptions) (CopyResult, error) {
	return s.send(ctx, target, agboxv1.CopyPlacement_COPY_PLACEMENT_CONTENT, options, func(w io.Writer) error {
		_, err := io.Copy(w, archive)
		return err
	})
}

// WriteFile writes a file of the sandbox, as a whole or not at all. Missing directories are not created.
func (s *Sandbox) WriteFile(ctx context.Context, name string, data []byte, mode fs.FileMode) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: path.Base(name), Size: int64(len(data)), Mode: int64(mode.Perm())}
	_, err := s.send(ctx, path.Dir(name), agboxv1.CopyPlacement_COPY_PLACEMENT_CONTENT, CopyOptions{}, func(w io.Writer) error {
		archive := tar.NewWriter(w)
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(data); err != nil {
			return err
		}
		return archive.Close()
	})
	return err
}

// send makes a CopyIn call of what write produces. If the daemon ends it, its reason is the better one.
func (s *Sandbox) send(
	ctx context.Context, target string, placement agboxv1.CopyPlacement, options CopyOptions, write func(io.Writer) error,
) (CopyResult, error) {
	stream, err := s.client.raw.CopyIn(ctx, &agboxv1.CopyInTarget{
		SandboxId: s.id, Path: target, Placement: placement, AsRoot: options.AsRoot,
	})
	if err != nil {
		return CopyResult{}, err
	}
	defer stream.Close()
	if err := write(stream); err != nil && !errors.Is(err, io.EOF) {
		return CopyResult{}, err // the archive has no end, so the sandbox does not take it for complete
	}
	response, err := stream.Finish()
	if err != nil {
		return CopyResult{}, err
	}
	return CopyResult{Entries: response.GetEntries(), Bytes: response.GetBytes()}, nil
}

// CopyOut copies a file or a directory of the sandbox to this machine, with the rules of CopyIn. What comes out of a
// sandbox is untrusted: nothing is written outside the target, or through a symbolic link. Symbolic links are created
// as they are and may lead anywhere, so do not follow them blindly. On an error, what was copied before stays; each
// file is complete.
func (s *Sandbox) CopyOut(ctx context.Context, source, target string, options CopyOptions) (CopyResult, error) {
	if options.MaxEntries == 0 {
		options.MaxEntries = defaultMaxEntries
	}
	if options.MaxBytes == 0 {
		options.MaxBytes = defaultMaxBytes
	}
	archive, err := s.openArchive(ctx, source, options.AsRoot)
	if err != nil {
		return CopyResult{}, err
	}
	defer archive.stream.Close()
	unpacked, err := unpack(archive, target, rootName(source), options.MaxEntries, options.MaxBytes)
	if err == nil {
		err = archive.finish()
	}
	result := CopyResult{Entries: uint64(unpacked.entries), Bytes: uint64(unpacked.bytes)}
	result.Notes, result.FirstNote = archive.summary.GetNotes(), archive.summary.GetFirstNote()
	return result, err
}

// CopyTarOut writes a file or a directory of the sandbox as a tar stream, unchecked.
func (s *Sandbox) CopyTarOut(ctx context.Context, source string, into io.Writer, options CopyOptions) (CopyResult, error) {
	archive, err := s.openArchive(ctx, source, options.AsRoot)
	if err != nil {
		return CopyResult{}, err
	}
	defer archive.stream.Close()
	if _, err := io.Copy(into, archive); err != nil {
		return CopyResult{}, err
	}
	summary := archive.summary
	return CopyResult{summary.GetEntries(), summary.GetBytes(), summary.GetNotes(), summary.GetFirstNote()}, nil
}

// ReadFile returns a file of the sandbox, of at most 64 MiB: what is larger, CopyOut copies.
func (s *Sandbox) ReadFile(ctx context.Context, name string) ([]byte, error) {
	archive, err := s.openArchive(ctx, name, false)
	if err != nil {
		return nil, err
	}
	defer archive.stream.Close()
	reader := tar.NewReader(archive)
	header, err := reader.Next()
	if err != nil {
		return nil, archiveError(err)
	}
	if header.Typeflag != tar.TypeReg {
		return nil, fmt.Errorf("%s is not a file", name)
	}
	if header.Size > maxReadFile {
		return nil, fmt.Errorf("%s has %d bytes, more than %d; copy it with CopyOut", name, header.Size, maxReadFile)
	}
	data := bytes.Buffer{}
	if _, err := io.Copy(&data, reader); err != nil {
		return nil, archiveError(err)
	}
	return data.Bytes(), archive.finish()
}

// sandboxArchive reads the tar stream of a CopyOut call.
type sandboxArchive struct {
	stream  rawclient.Stream[agboxv1.CopyOutResponse]
	unread  []byte
	summary *agboxv1.CopySummary // the end
}

func (s *Sandbox) openArchive(ctx context.Context, source string, asRoot bool) (*sandboxArchive, error) {
	stream, err := s.client.raw.CopyOut(ctx, &agboxv1.CopyOutRequest{SandboxId: s.id, Path: source, AsRoot: asRoot})
	if err != nil {
		return nil, err
	}
	return &sandboxArchive{stream: stream}, nil
}

func (a *sandboxArchive) Read(into []byte) (int, error) {
	for len(a.unread) == 0 {
		if a.summary != nil {
			return 0, io.EOF
		}
		message, err := a.stream.Recv()
		if errors.Is(err, io.EOF) {
			return 0, errors.New("the sandbox ended the stream without its end: the copy is incomplete")
		}
		if err != nil {
			return 0, err
		}
		a.unread, a.summary = message.GetData(), message.GetSummary()
	}
	size := copy(into, a.unread)
	a.unread = a.unread[size:]
	return size, nil
}

// finish reads what follows the end of the archive.
func (a *sandboxArchive) finish() error {
	size, err := io.Copy(io.Discard, io.LimitReader(a, maxAfterArchive))
	if err == nil && size == maxAfterArchive {
		err = errors.New("the sandbox sent more after the end of the archive")
	}
	return err
}

// archiveError says that a stream is no archive, unless it is another error.
func archiveError(err error) error {
	if errors.Is(err, tar.ErrHeader) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the sandbox sent no valid tar stream: %w", err)
	}
	return err
}

// rootName returns the name that the root of a path has; empty if the path is the content of a directory.
func rootName(source string) string {
	trimmed := strings.TrimRight(source, "/")
	switch last := trimmed[strings.LastIndex(trimmed, "/")+1:]; last {
	case ".", "..", "~":
		return ""
	default:
		return last
	}
}

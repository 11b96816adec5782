// SPDX-License-Identifier: Apache-2.0

package client

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

type unpacked struct {
	entries int
	bytes   int64
}

// An unpacker writes a tar stream of a sandbox below one directory. The stream is hostile input: names with "..", links
// through which later entries would be written, hard links, devices, and as much of everything as it likes.
type unpacker struct {
	root *os.Root
	// The name of the root of the stream, in the directory: a sandbox must not choose which files it replaces. Empty if
	// the content of the root goes into the directory.
	name       string
	maxEntries int
	maxBytes   int64
	done       unpacked
	// The directories of the stream. Attributes are set in the end: one without the right to write must be filled.
	directories map[string]*attributes
	order       []string
	nameBytes   int // of all of them: memory that the sandbox makes us use
}

// attributes of a directory.
type attributes struct {
	isKept   bool // it was there before
	mode     fs.FileMode
	modified time.Time
}

const (
	maxName      = 4096
	maxLevels    = 128
	maxHeaders   = 32 << 20 // of one entry; that of a sparse file lists its parts
	maxNameBytes = 256 << 20
	// Of modes: other users of this machine may not write what a sandbox says that they may.
	keptBits fs.FileMode = 0o755
)

// unpack writes a stream to a target, with the rules of copy commands. name is that of its root; empty if its content
// is meant.
func unpack(stream io.Reader, target, name string, maxEntries int, maxBytes int64) (unpacked, error) {
	directory, name, err := place(target, name)
	if err != nil {
		return unpacked{}, err
	}
	root, err := os.OpenRoot(directory)
	if err != nil {
		return unpacked{}, err
	}
	defer root.Close()
	u := &unpacker{
		root: root, name: name, maxEntries: maxEntries, maxBytes: maxBytes, directories: map[string]*attributes{},
	}
	err = u.unpackAll(&boundedHeaders{stream: stream})
	return u.done, errors.Join(err, u.finishDirectories())
}

// place decides in which directory the root of a stream gets which name.
func place(target, name string) (directory, newName string, err error) {
	if target == "" {
		target = "."
	}
	meansDirectory := strings.HasSuffix(target, "/")
	target = filepath.Clean(target)
	// An earlier stream may have made a link there; a slash at its end says that it is meant.
	info, err := os.Lstat(target)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if !meansDirectory {
			return "", "", fmt.Errorf("%s is a symbolic link; if it is meant, write a slash after it", target)
		}
		info, err = os.Stat(target)
	}
	switch {
	case err == nil && info.IsDir():
		return target, name, nil
	case err == nil && (meansDirectory || name == ""):
		return "", "", fmt.Errorf("%s is not a directory", target)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", "", err
	case err != nil && name == "": // the content goes into a new directory
		return target, "", os.Mkdir(target, 0o777)
	case err != nil && meansDirectory:
		return "", "", fmt.Errorf("%s/ does not exist; create this directory first", target)
	}
	return filepath.Dir(target), filepath.Base(target), nil
}

// boundedHeaders reads a stream in which only files have any length: extended headers may follow each other without end.
type boundedHeaders struct {
	stream io.Reader
	isFile bool // whose content is being read
	left   int  // of the headers
}

var errHeaders = fmt.Errorf("the headers of an entry have more than %d bytes", maxHeaders)

func (b *boundedHeaders) Read(into []byte) (int, error) {
	if b.isFile {
		return b.stream.Read(into)
	}
	if b.left == 0 {
		return 0, errHeaders
	}
	size, err := b.stream.Read(into[:min(len(into), b.left)])
	b.left -= size
	return size, err
}

func (u *unpacker) unpackAll(stream *boundedHeaders) error {
	archive := tar.NewReader(stream)
	for {
		stream.isFile, stream.left = false, maxHeaders
		header, err := archive.Next()
		stream.isFile = true
		if errors.Is(err, io.EOF) {
			if u.done.entries == 0 {
				return archiveError(io.ErrUnexpectedEOF)
			}
			return nil
		}
		if err != nil {
			return archiveError(err)
		}
		if u.done.entries++; u.done.entries > u.maxEntries {
			return fmt.Errorf("the sandbox sent more than %d entries", u.maxEntries)
		}
		if err := u.unpackEntry(header, archive); err != nil {
			return fmt.Errorf("%q of the sandbox: %w", header.Name, err)
		}
	}
}

func (u *unpacker) unpackEntry(header *tar.Header, content io.Reader) error {
	name, err := u.nameFor(header)
	if err != nil {
		return err
	}
	if err := u.makeParents(name); err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeDir:
		return u.makeDirectory(name, header)
	case tar.TypeReg, tar.TypeGNUSparse:
		return u.writeFile(name, header, content)
	case tar.TypeSymlink:
		return u.replace(name, func(temporary string) error { return u.root.Symlink(header.Linkname, temporary) })
	default:
		return fmt.Errorf("entries of type %q are refused", header.Typeflag)
	}
}

// nameFor returns where an entry goes. All of them are the root of the stream or below it; it is the first one.
func (u *unpacker) nameFor(header *tar.Header) (string, error) {
	name := strings.TrimSuffix(header.Name, "/")
	if strings.ContainsRune(name, 0) || name == "" || len(name) > maxName || path.IsAbs(name) {
		return "", errors.New("this name is refused")
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", errors.New("a name with .. is refused")
		}
	}
	name = path.Clean(name)
	if strings.Count(name, "/") > maxLevels {
		return "", fmt.Errorf("it has more than %d levels of directories", maxLevels)
	}
	if u.name == "" {
		return name, nil
	}
	_, below, _ := strings.Cut(name, "/")
	if u.done.entries > 1 && below == "" {
		return "", errors.New("the stream has a second root")
	}
	return path.Join(u.name, below), nil
}

// makeParents makes the directories above an entry that the stream did not name before. None of them may be a link.
func (u *unpacker) makeParents(name string) error {
	parent := path.Dir(name)
	if parent == "." || u.directories[parent] != nil {
		return nil
	}
	if err := u.makeParents(parent); err != nil {
		return err
	}
	return u.makeDirectory(parent, nil)
}

// makeDirectory makes one for an entry or, if that is nil, for what is below it.
func (u *unpacker) makeDirectory(name string, entry *tar.Header) error {
	if name == "." {
		return nil
	}
	found := u.directories[name]
	if found == nil {
		if u.nameBytes += len(name); u.nameBytes > maxNameBytes {
			return fmt.Errorf("the names of its directories have more than %d bytes", maxNameBytes)
		}
		found = &attributes{mode: 0o755, modified: time.Now()}
		info, err := u.root.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = u.root.Mkdir(name, 0o700)
		case err == nil && !info.IsDir():
			err = fmt.Errorf("a directory cannot replace %s", name)
		case err == nil:
			found.isKept = true
		}
		if err != nil {
			return err
		}
		u.directories[name] = found
		u.order = append(u.order, name)
	}
	if entry != nil {
		found.mode, found.modified = fs.FileMode(entry.Mode)&keptBits, entry.ModTime
	}
	return nil
}

func (u *unpacker) writeFile(name string, header *tar.Header, content io.Reader) error {
	if u.done.bytes += header.Size; header.Size < 0 || u.done.bytes > u.maxBytes {
		return fmt.Errorf("with it, the files of the sandbox have more than %d bytes", u.maxBytes)
	}
	return u.replace(name, func(temporary string) (err error) {
		file, err := u.root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		if err := copySparse(file, content, header.Size); err != nil {
			return archiveError(err)
		}
		return file.Chmod(fs.FileMode(header.Mode) & keptBits)
	}, header.ModTime)
}

// replace makes an entry under another name and gives it its own when it is complete. Nothing is written through a link
// that has the name now.
func (u *unpacker) replace(name string, make func(temporary string) error, modified ...time.Time) error {
	if info, err := u.root.Lstat(name); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a directory, which it cannot replace", name)
	}
	temporary := path.Join(path.Dir(name), ".agbox-"+newID())
	err := make(temporary)
	for _, time := range modified {
		if err == nil {
			err = u.root.Chtimes(temporary, time, time)
		}
	}
	if err == nil {
		err = u.root.Rename(temporary, name)
	}
	if err != nil {
		if removed := u.root.Remove(temporary); !errors.Is(removed, fs.ErrNotExist) {
			err = errors.Join(err, removed)
		}
	}
	return err
}

func (u *unpacker) finishDirectories() error {
	var failed error
	for _, name := range slices.Backward(u.order) {
		if found := u.directories[name]; !found.isKept {
			failed = errors.Join(failed, u.root.Chmod(name, found.mode), u.root.Chtimes(name, found.modified, found.modified))
		}
	}
	return failed
}

// copySparse leaves holes where the content is zero.
func copySparse(file *os.File, content io.Reader, size int64) error {
	block, zero := make([]byte, 64<<10), make([]byte, 64<<10)
	for left := size; left > 0; {
		part := block[:min(int64(len(block)), left)]
		if _, err := io.ReadFull(content, part); err != nil {
			return err
		}
		left -= int64(len(part))
		if bytes.Equal(part, zero[:len(part)]) {
			if _, err := file.Seek(int64(len(part)), io.SeekCurrent); err != nil {
				return err
			}
			continue
		}
		if _, err := file.Write(part); err != nil {
			return err
		}
	}
	return file.Truncate(size)
}

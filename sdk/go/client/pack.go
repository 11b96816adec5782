// SPDX-License-Identifier: Apache-2.0

package client

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A packer writes a tree of this machine as a tar stream, while other processes may change it: what vanishes is left
// out, of a file that grows the beginning is packed, one that shrinks is filled with zeros. No link is followed.
type packer struct {
	notes     uint64
	firstNote string
}

func (p *packer) note(name, what string) {
	if p.notes++; p.notes == 1 {
		p.firstNote = name + ": " + what
	}
}

// pack writes one root, which is named as the last component of the source, or "." for the content of a directory.
func (p *packer) pack(ctx context.Context, source string, into io.Writer) error {
	if source == "" {
		return errors.New("the path of the source must not be empty")
	}
	root := filepath.Base(source)
	if last := source[strings.LastIndex(source, "/")+1:]; last == "." || last == ".." || root == "/" {
		root = "."
	}
	start := filepath.Clean(source)
	if root == "." || strings.HasSuffix(source, "/") { // a directory, or a link to one
		resolved, err := filepath.EvalSymlinks(start)
		if err != nil {
			return err
		}
		start = resolved
	}
	archive := tar.NewWriter(into)
	walk := func(name string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		below, relErr := filepath.Rel(start, name)
		if relErr != nil {
			return relErr
		}
		if errors.Is(err, fs.ErrNotExist) && below != "." {
			return nil
		}
		if err != nil {
			return err
		}
		if below == "." && !entry.IsDir() && (root == "." || strings.HasSuffix(source, "/")) {
			return fmt.Errorf("%s is not a directory", source)
		}
		return p.packEntry(archive, name, path.Join(root, filepath.ToSlash(below)), entry)
	}
	if err := filepath.WalkDir(start, walk); err != nil {
		return err
	}
	return archive.Close()
}

func (p *packer) packEntry(archive *tar.Writer, name, stored string, entry fs.DirEntry) error {
	switch entry.Type() {
	case 0:
		return p.packFile(archive, name, stored)
	case fs.ModeDir, fs.ModeSymlink:
	default:
		p.note(name, "neither a file, a directory nor a symbolic link: left out")
		return nil
	}
	info, err := entry.Info()
	link := ""
	if err == nil && entry.Type() == fs.ModeSymlink {
		link, err = os.Readlink(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return writeHeader(archive, info, link, stored)
}

func (p *packer) packFile(archive *tar.Writer, name, stored string) error {
	// It may be replaced by a link or a FIFO by now.
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENXIO) {
		p.note(name, "it was replaced while it was read: left out")
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		p.note(name, "it was replaced while it was read: left out")
		return nil
	}
	if err := writeHeader(archive, info, "", stored); err != nil {
		return err
	}
	size, err := io.Copy(archive, io.LimitReader(file, info.Size()))
	if err == nil && size < info.Size() {
		p.note(name, "it became shorter while it was read: filled with zeros")
		_, err = io.CopyN(archive, zeros{}, info.Size()-size)
	}
	return err
}

func writeHeader(archive *tar.Writer, info fs.FileInfo, link, stored string) error {
	header, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	header.Name, header.Format = stored, tar.FormatPAX
	// Files belong to the user of the sandbox; who owns them here is nobody's business there.
	header.Uid, header.Gid, header.Uname, header.Gname = 0, 0, "", ""
	header.AccessTime, header.ChangeTime = time.Time{}, time.Time{}
	if info.IsDir() {
		header.Name += "/"
	}
	return archive.WriteHeader(header)
}

type zeros struct{}

func (zeros) Read(into []byte) (int, error) {
	clear(into)
	return len(into), nil
}

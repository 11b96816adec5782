// SPDX-License-Identifier: Apache-2.0

package client

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

type entry struct {
	name, content, link string
	kind                byte
	mode                int64
}

func archiveOf(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var made bytes.Buffer
	writer := tar.NewWriter(&made)
	for _, entry := range entries {
		if entry.kind == 0 {
			entry.kind = tar.TypeReg
		}
		if entry.mode == 0 {
			entry.mode = 0o644
		}
		header := &tar.Header{
			Typeflag: entry.kind, Name: entry.name, Linkname: entry.link, Mode: entry.mode,
			Size: int64(len(entry.content)), ModTime: time.Unix(1_000_000_000, 0), Format: tar.FormatPAX,
		}
		if err := writer.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(writer, entry.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return made.Bytes()
}

func directory(name string) entry { return entry{name: name, kind: tar.TypeDir, mode: 0o772} }
func link(name, to string) entry  { return entry{name: name, kind: tar.TypeSymlink, link: to} }

// unpackHere unpacks into a directory of its own, and returns what is in its parent then, with the content of files.
func unpackHere(t *testing.T, name string, stream []byte) (map[string]string, error) {
	t.Helper()
	parent := t.TempDir()
	target := filepath.Join(parent, "target")
	if err := os.Mkdir(target, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(parent, "secret"), []byte("untouched"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := unpack(bytes.NewReader(stream), target, name, 1000, 1<<20)
	return contentOf(t, parent), err
}

func contentOf(t *testing.T, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	walk := func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, _ := filepath.Rel(root, name)
		switch entry.Type() {
		case fs.ModeDir:
			found[below] = "/"
		case fs.ModeSymlink:
			to, err := os.Readlink(name)
			found[below] = "-> " + to
			return err
		default:
			text, err := os.ReadFile(name)
			found[below] = string(text)
			return err
		}
		return nil
	}
	if err := filepath.WalkDir(root, walk); err != nil {
		t.Fatal(err)
	}
	return found
}

func TestAHostileStreamWritesNothingElsewhere(t *testing.T) {
	for name, entries := range map[string][]entry{
		"dot dot":                  {{name: "../secret", content: "x"}},
		"dot dot below":            {directory("tree"), {name: "tree/../../secret", content: "x"}},
		"absolute":                 {{name: "/etc/agbox-escape", content: "x"}},
		"through a link":           {directory("tree"), link("tree/out", "../.."), {name: "tree/out/secret", content: "x"}},
		"through an absolute link": {directory("tree"), link("tree/out", "/tmp"), {name: "tree/out/agbox-escape", content: "x"}},
		"through a chain":          {directory("tree"), link("tree/a", "b"), link("tree/b", ".."), {name: "tree/a/x/y", content: "x"}},
		"a directory for a link":   {directory("tree"), link("tree/out", ".."), directory("tree/out")},
		"a link for a directory":   {directory("tree"), directory("tree/sub"), link("tree/sub", "../..")},
		"hard link":                {directory("tree"), {name: "tree/hard", kind: tar.TypeLink, link: "../secret"}},
		"device":                   {directory("tree"), {name: "tree/device", kind: tar.TypeChar}},
		"FIFO":                     {directory("tree"), {name: "tree/fifo", kind: tar.TypeFifo}},
		"a second root":            {{name: "tree", content: "x"}, {name: "other", content: "y"}},
		"too many levels":          {{name: strings.Repeat("x/", 200), kind: tar.TypeDir}},
		"a long name":              {{name: strings.Repeat("x/", 3000), kind: tar.TypeDir}},
		"too many bytes":           {{name: "tree", content: strings.Repeat("x", 1<<20+1)}},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := unpackHere(t, "tree", archiveOf(t, entries...))
			if err == nil {
				t.Error("not refused")
			}
			for below, text := range found {
				if below == "secret" && text != "untouched" || below != "." && below != "secret" && !strings.HasPrefix(below, "target") {
					t.Errorf("%s has %q", below, text)
				}
				if strings.Contains(below, ".agbox-") {
					t.Errorf("%s was left", below)
				}
			}
			for _, escaped := range []string{"/etc/agbox-escape", "/tmp/agbox-escape"} {
				if _, err := os.Lstat(escaped); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s: %v", escaped, err)
				}
			}
		})
	}
}

func TestTooManyEntriesAreRefused(t *testing.T) {
	entries := []entry{directory("tree")}
	for range 1000 {
		entries = append(entries, directory("tree/same"))
	}
	if _, err := unpackHere(t, "tree", archiveOf(t, entries...)); err == nil || !strings.Contains(err.Error(), "more than 1000 entries") {
		t.Error(err)
	}
}

// A repeating reader has the same bytes again and again.
type repeating struct {
	data []byte
	at   int
}

func (r *repeating) Read(into []byte) (int, error) {
	size := copy(into, r.data[r.at:])
	r.at = (r.at + size) % len(r.data)
	return size, nil
}

func TestHeadersWithoutAnEndAreRefused(t *testing.T) {
	extended := archiveOf(t, entry{name: strings.Repeat("x", 200), content: "x"})[:1024] // the extended header and its record
	if extended[156] != tar.TypeXHeader {
		t.Fatalf("this begins with %q", extended[156])
	}
	_, err := unpack(&repeating{data: extended}, t.TempDir(), "tree", 1000, 1<<20)
	if !errors.Is(err, errHeaders) {
		t.Error(err)
	}
}

func TestWhatIsNoArchiveIsRefused(t *testing.T) {
	whole := archiveOf(t, entry{name: "file", content: strings.Repeat("x", 2000)})
	for name, stream := range map[string][]byte{
		"nothing": nil, "noise": bytes.Repeat([]byte("noise"), 1000), "cut": whole[:1500],
	} {
		found, err := unpackHere(t, "file", stream)
		if err == nil || !strings.Contains(err.Error(), "no valid tar stream") {
			t.Errorf("%s: %v", name, err)
		}
		if len(found) != 3 { // a file is complete or not there
			t.Errorf("%s: %v", name, found)
		}
	}
}

func TestATreeArrivesAsItWas(t *testing.T) {
	target := t.TempDir()
	zeros := strings.Repeat("\x00", 200<<10)
	stream := archiveOf(t,
		directory("name-of-the-sandbox"), entry{name: "name-of-the-sandbox/run.sh", content: "#!/bin/sh\n", mode: 0o4777},
		link("name-of-the-sandbox/out", "/etc/passwd"), entry{name: "name-of-the-sandbox/new/deep", content: zeros + "x"},
		entry{name: "name-of-the-sandbox/closed", kind: tar.TypeDir, mode: 0o500}, entry{name: "name-of-the-sandbox/closed/file", content: "in"},
	)
	done, err := unpack(bytes.NewReader(stream), target, "report", 1000, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if done.entries != 6 {
		t.Error(done)
	}
	found := contentOf(t, target)
	want := map[string]string{
		".": "/", "report": "/", "report/run.sh": "#!/bin/sh\n", "report/out": "-> /etc/passwd", "report/new": "/",
		"report/new/deep": zeros + "x", "report/closed": "/", "report/closed/file": "in",
	}
	for name, text := range want {
		if found[name] != text {
			t.Errorf("%s is not as it was", name)
		}
	}
	if len(found) != len(want) {
		t.Errorf("%d entries, want %d", len(found), len(want))
	}
	for name, mode := range map[string]fs.FileMode{"report": 0o750, "report/run.sh": 0o755, "report/closed": 0o500} {
		info, err := os.Stat(filepath.Join(target, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode()&^fs.ModeDir != mode || !info.ModTime().Equal(time.Unix(1_000_000_000, 0)) {
			t.Errorf("%s: %v %v", name, info.Mode(), info.ModTime())
		}
	}
	if err := os.Chmod(filepath.Join(target, "report/closed"), 0o700); err != nil { // for its removal
		t.Fatal(err)
	}
}

func TestWhereARootGoes(t *testing.T) {
	file, tree := archiveOf(t, entry{name: "root", content: "new"}), archiveOf(t, directory("root"), entry{name: "root/x", content: "new"})
	content := archiveOf(t, directory("."), entry{name: "./x", content: "new"})
	for _, test := range []struct {
		what, target, name string
		stream             []byte
		want, problem      string
	}{
		{"a new file", "new", "root", file, "new", ""},
		{"a file that is replaced", "file", "root", file, "file", ""},
		{"a file into a directory", "directory", "root", file, "directory/root", ""},
		{"a file into a directory, with a slash", "directory/", "root", file, "directory/root", ""},
		{"a new directory", "new", "root", tree, "new/x", ""},
		{"a directory into a directory", "directory", "root", tree, "directory/root/x", ""},
		{"content into a directory", "directory", "", content, "directory/x", ""},
		{"content into a new directory", "new", "", content, "new/x", ""},
		{"a directory for a file", "file", "root", tree, "", "cannot replace"},
		{"content for a file", "file", "", content, "", "is not a directory"},
		{"a file for a directory", "directory", "taken", file, "", "is a directory, which it cannot replace"},
		{"no parent", "none/new", "root", file, "", "no such file"},
		{"no directory", "new/", "root", file, "", "create this directory first"},
		{"a link to a directory", "link", "root", file, "", "is a symbolic link"},
		{"a link that is meant", "link/", "root", file, "directory/root", ""},
		{"a link to a file", "file-link", "root", file, "", "is a symbolic link"},
	} {
		t.Run(test.what, func(t *testing.T) {
			t.Chdir(t.TempDir())
			err := errors.Join(os.MkdirAll("directory/taken", 0o755), os.WriteFile("file", []byte("old"), 0o600),
				os.Symlink("directory", "link"), os.Symlink("file", "file-link"))
			if err != nil {
				t.Fatal(err)
			}
			_, err = unpack(bytes.NewReader(test.stream), test.target, test.name, 10, 1000)
			if test.problem != "" {
				if err == nil || !strings.Contains(err.Error(), test.problem) {
					t.Errorf("%v", err)
				}
				if text, _ := os.ReadFile("file"); string(text) != "old" {
					t.Errorf("the file is now %q", text)
				}
				return
			}
			if text, readErr := os.ReadFile(test.want); err != nil || readErr != nil || string(text) != "new" {
				t.Errorf("%q %v %v", text, err, readErr)
			}
		})
	}
}

func TestNamesOfRoots(t *testing.T) {
	for source, want := range map[string]string{
		"/workspace/report": "report", "/workspace/report/": "report", "/workspace/report/.": "", "~": "", "~/x": "x", "/a/..": "",
	} {
		if name := rootName(source); name != want {
			t.Errorf("%s: %q", source, name)
		}
	}
}

// What is packed is what unpack makes of it.
func TestPackingIsTheOppositeOfUnpacking(t *testing.T) {
	t.Chdir(t.TempDir())
	err := errors.Join(os.MkdirAll("tree/sub", 0o755), os.WriteFile("tree/sub/file", []byte("text"), 0o640),
		os.Symlink("/etc/passwd", "tree/link"), os.Symlink("tree", "to-tree"))
	if err != nil {
		t.Fatal(err)
	}
	for source, prefix := range map[string]string{"tree": "tree", "tree/": "tree", "tree/.": ".", "to-tree/": "to-tree", "./tree/sub/..": "."} {
		var made bytes.Buffer
		if err := (&packer{}).pack(t.Context(), source, &made); err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		target := t.TempDir()
		if _, err := unpack(&made, target, map[bool]string{false: prefix}[prefix == "."], 100, 1000); err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		found := contentOf(t, filepath.Join(target, prefix))
		if len(found) != 4 || found["sub/file"] != "text" || found["link"] != "-> /etc/passwd" {
			t.Errorf("%s: %v", source, found)
		}
	}
	for source, problem := range map[string]string{
		"": "must not be empty", "none": "no such file", "tree/sub/file/.": "not a directory", "tree/link/": "not a directory",
	} {
		if err := (&packer{}).pack(t.Context(), source, io.Discard); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%q: %v", source, err)
		}
	}
}

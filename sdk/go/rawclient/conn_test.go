// SPDX-License-Identifier: Apache-2.0

package rawclient

import (
	"strings"
	"testing"
)

func TestSocketPath(t *testing.T) {
	for _, test := range []struct {
		system, runtimeDirectory, home string
		want, problem                  string
	}{
		{system: "linux", runtimeDirectory: "/run/user/1000", want: "/run/user/1000/agbox/agboxd.sock"},
		{system: "linux", home: "/home/me", problem: "XDG_RUNTIME_DIR is required"},
		{system: "linux", runtimeDirectory: "run", problem: "must be an absolute path"},
		{system: "darwin", home: "/Users/me", want: "/Users/me/Library/Application Support/agbox/run/agboxd.sock"},
		{system: "darwin", runtimeDirectory: "/tmp/r", home: "/Users/me", want: "/tmp/r/agbox/agboxd.sock"},
		{system: "darwin", problem: "HOME must be"},
	} {
		variables := map[string]string{"XDG_RUNTIME_DIR": test.runtimeDirectory, "HOME": test.home}
		path, err := socketPath(test.system, func(name string) string { return variables[name] })
		if path != test.want {
			t.Errorf("%+v: %q", test, path)
		}
		if (err == nil) != (test.problem == "") || err != nil && !strings.Contains(err.Error(), test.problem) {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var goBlock = regexp.MustCompile("(?ms)^```go\n(.*?)^```")

func TestTheDocumentShowsTheExamples(t *testing.T) {
	document, err := os.ReadFile("../../../docs/sdk_go_usage.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := goBlock.FindAllStringSubmatch(string(document), -1)
	if shown, made := len(blocks), strings.Count(string(source), "\nfunc example"); shown != made {
		t.Errorf("the document has %d examples, example_test.go %d", shown, made)
	}
	for _, block := range blocks {
		indented := "\t" + strings.ReplaceAll(strings.TrimSuffix(block[1], "\n"), "\n", "\n\t")
		indented = strings.ReplaceAll(indented, "\n\t\n", "\n\n")
		if !strings.Contains(string(source), indented) {
			t.Errorf("this is not in example_test.go:\n%s", block[1])
		}
	}
}

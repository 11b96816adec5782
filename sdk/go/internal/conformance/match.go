// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"reflect"
	"strings"
)

// match compares a value with an expectation, as the README of the table says.
func match(wanted, found any) error {
	switch wanted := wanted.(type) {
	case nil:
		if !isEmpty(found) {
			return fmt.Errorf("expected nothing, got %v", found)
		}
	case string:
		if wanted == "*" {
			if isEmpty(found) {
				return fmt.Errorf("expected something, got %v", found)
			}
			return nil
		}
		if found != any(wanted) {
			return fmt.Errorf("expected %q, got %#v", wanted, found)
		}
	case map[string]any:
		object, isObject := found.(map[string]any)
		if !isObject {
			return fmt.Errorf("expected %v, got %v", wanted, found)
		}
		for key, value := range wanted {
			if name, isPart := strings.CutSuffix(key, "_contains"); isPart {
				if text, _ := object[name].(string); !strings.Contains(text, value.(string)) {
					return fmt.Errorf("%s: expected %q in %q", name, value, text)
				}
				continue
			}
			if err := match(value, object[key]); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
	case []any:
		list, isList := found.([]any)
		if !isList || len(list) != len(wanted) {
			return fmt.Errorf("expected %v, got %v", wanted, found)
		}
		for i := range wanted {
			if err := match(wanted[i], list[i]); err != nil {
				return fmt.Errorf("[%d]: %w", i, err)
			}
		}
	default:
		if wanted != found {
			return fmt.Errorf("expected %v, got %v", wanted, found)
		}
	}
	return nil
}

func isEmpty(value any) bool {
	if value == nil {
		return true
	}
	switch kind := reflect.ValueOf(value); kind.Kind() {
	case reflect.String, reflect.Slice, reflect.Map:
		return kind.Len() == 0
	default:
		return false
	}
}

// at returns the value at a path such as "event.sequence"; nil if there is none.
func at(value any, path string) any {
	for key := range strings.SplitSeq(path, ".") {
		object, isObject := value.(map[string]any)
		if !isObject {
			return nil
		}
		value = object[key]
	}
	return value
}

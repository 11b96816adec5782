#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Generates the bindings of the API for Python and Go, which are checked in, with pinned generators.
#
#   scripts/generate_proto.sh           writes them
#   scripts/generate_proto.sh --check   fails if they do not fit the .proto files; needs a second
. "$(dirname -- "$0")/lib/steps.sh"
case ${1:-} in
  "" | --check) ;;
  -h | --help) sed -n '3,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0 ;;
  *) die "$1: unknown argument; see --help" ;;
esac
cd "$root"
scripts/install-packages --for sdk

python_directory=sdk/python/src/agents_sandbox/_generated
go_directory=api/generated/agboxv1
go_package=github.com/1996fanrui/agents-sandbox/api/generated
mapfile -t service < <(cd api && ls agbox/v1/*.proto)

made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
mkdir "$made/python" "$made/go"

protoc() { build/tools/python/bin/python -m grpc_tools.protoc -I api "$@"; }

protoc --python_out="$made/python" --pyi_out="$made/python" "${service[@]}" agbox/rpc/error_details.proto
protoc --grpc_python_out="$made/python" agbox/v1/service.proto
# Python finds modules by the path of the .proto file; ours are in a package of the SDK.
find "$made/python" -name '*.py*' -exec sed -i 's/^from agbox\./from agents_sandbox._generated.agbox./' {} +
for package in "" /agbox /agbox/v1 /agbox/rpc; do touch "$made/python$package/__init__.py"; done

# The .proto files name no Go package: it is passed for each of them.
packages=()
for file in "${service[@]}"; do packages+=("--go_opt=M$file=$go_package/agboxv1" "--go-grpc_opt=M$file=$go_package/agboxv1"); done
protoc --plugin=build/tools/go/bin/protoc-gen-go --plugin=build/tools/go/bin/protoc-gen-go-grpc \
  --go_out="$made/go" --go_opt="module=$go_package" --go-grpc_out="$made/go" --go-grpc_opt="module=$go_package" \
  "${packages[@]}" "${service[@]}"

# fits MADE CHECKED_IN
fits() {
  diff -r --exclude=__pycache__ "$1" "$2" >&2 ||
    die "$2 does not fit the .proto files (<: expected, >: there); run scripts/generate_proto.sh and commit it"
}
if [ "${1:-}" = --check ]; then
  fits "$made/python" "$python_directory"
  fits "$made/go/agboxv1" "$go_directory"
else
  rm -rf "$python_directory" "$go_directory"
  mkdir -p "$(dirname "$go_directory")"
  cp -R "$made/python" "$python_directory"
  cp -R "$made/go/agboxv1" "$go_directory"
fi

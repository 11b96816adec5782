// SPDX-License-Identifier: Apache-2.0
#include "unit/daemon/configuration_reference.h"

#include <filesystem>

#include "base/check.h"
#include "daemon/configuration.h"
#include "paths/fixed_paths.h"

namespace agbox {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIntroduction = R"(# Configuration reference

What can I configure? `agboxd` reads one optional file, `config.toml`, at start. To apply a change,
restart it with `systemctl --user restart agboxd`: sandboxes and their commands keep running, and a
sandbox keeps the settings that it was created with.

An unknown key, a wrong type or a value out of range is an error: the daemon exits with code 2 and a
message that names the key, the line and a valid example. An empty string or list means the default.
Do not put secrets into this file.

This page is generated from the source code; see [Updating this page](#updating-this-page).
)";

constexpr std::string_view kPathsIntroduction = R"(
## Fixed paths

| File | Linux | macOS |
|---|---|---|
)";

constexpr std::string_view kPathsNotes = R"(
`XDG_RUNTIME_DIR` is required on Linux. `XDG_CONFIG_HOME` defaults to `~/.config`, `XDG_DATA_HOME` to
`~/.local/share`. If these variables are set on macOS, they take precedence there too. All of them must
be absolute. The path of the socket can have at most 107 bytes. No flag or key changes these paths.

The directory of socket and lock has mode 0700; the daemon rejects a symbolic link or a directory of
another user. The daemon holds the lock while it runs, so a second daemon exits with code 1. The lock
file is not removed; it contains the PID of its last holder.
)";

constexpr std::string_view kKeysIntroduction = R"(
## Keys

| Key | Type | Default | Meaning |
|---|---|---|---|
)";

constexpr std::string_view kNotation = R"(
- **duration**: a string of decimal numbers with units, such as `"90s"`, `"1h30m"` or `"250ms"`. Units
  are `ns`, `us`, `ms`, `s`, `m` and `h`; `"0"` needs none. From 0 to `876000h`, a hundred years.
- **size**: a string of a number and a unit, such as `"512MiB"` or `"1.5g"`. Units are `k`, `m`, `g`, `t` and
  `p`, also written `kb` or `kib` and so on, in upper or lower case: always powers of 1024, as in the
  limits of a sandbox. Without a unit it is bytes.
- **template**: a relative path with the fields `{sandbox_id}` and `{exec_id}`.

An example with all keys, each with a value other than its default:

```toml
)";

constexpr std::string_view kClosing = R"(```

## Updating this page

```
cmake --preset dev && cmake --build --preset dev --target print_configuration_reference
build/dev/tests/print_configuration_reference > docs/configuration_reference.md
```
)";

FixedPaths shown_paths(Platform platform) {
  // The leading slash makes the placeholders absolute; shown() removes it.
  const Environment environment = platform == Platform::Linux
                                      ? Environment{{"XDG_RUNTIME_DIR", "/$XDG_RUNTIME_DIR"},
                                                    {"XDG_CONFIG_HOME", "/$XDG_CONFIG_HOME"},
                                                    {"XDG_DATA_HOME", "/$XDG_DATA_HOME"}}
                                      : Environment{{"HOME", "/~"}};
  const auto paths = resolve_fixed_paths(platform, environment);
  AGBOX_CHECK(paths.has_value(), "the placeholders are absolute");
  return *paths;
}

std::string shown(const fs::path& path) {
  return "`" + path.string().substr(1) + "`";
}

std::string path_row(std::string_view what, fs::path FixedPaths::* path) {
  return "| " + std::string(what) + " | " + shown(shown_paths(Platform::Linux).*path) + " | " +
         shown(shown_paths(Platform::MacOs).*path) + " |\n";
}

std::string shown_default(const ConfigurationKey& key) {
  if (!key.computed_default.empty()) return std::string(key.computed_default);
  return "`" + std::string(key.default_value) + "`";
}

}  // namespace

std::string configuration_reference() {
  std::string page(kIntroduction);
  page += kPathsIntroduction;
  page += path_row("socket", &FixedPaths::socket);
  page += path_row("host lock", &FixedPaths::lock);
  page += path_row("configuration", &FixedPaths::config_file);
  page += path_row("store", &FixedPaths::store);
  page += path_row("exec output (default)", &FixedPaths::default_exec_output_root);
  page += path_row("state (default)", &FixedPaths::default_state_root);
  page += kPathsNotes;
  page += kKeysIntroduction;
  for (const ConfigurationKey& key : configuration_keys()) {
    page += "| `" + key.full_name() + "` | " + std::string(key.written_as) + " | " +
            shown_default(key) + " | " + std::string(key.meaning) + " |\n";
  }
  page += kNotation;
  std::string_view table;
  for (const ConfigurationKey& key : configuration_keys()) {
    if (key.table != table) {
      if (!table.empty()) page += "\n";
      page += "[" + std::string(key.table) + "]\n";
      table = key.table;
    }
    page += std::string(key.name) + " = " + std::string(key.example) + "\n";
  }
  page += kClosing;
  return page;
}

}  // namespace agbox

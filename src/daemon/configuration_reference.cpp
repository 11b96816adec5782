// SPDX-License-Identifier: Apache-2.0
#include "daemon/configuration_reference.h"

#include <filesystem>

#include "base/check.h"
#include "daemon/configuration.h"
#include "paths/fixed_paths.h"

namespace agbox {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIntroduction = R"(# Configuration reference

`agboxd` has fixed paths and one optional file, `config.toml`. It takes no path from the command line
or from a variable of its own. The file is read once, at start: restart the daemon after a change.
That is harmless, because sandboxes and their commands keep running, and a sandbox keeps what it was
created with.

The file is strict. An unknown key, a wrong type or a value out of range ends the daemon with exit
code 2 and one sentence that names the key, the line and what to write instead. An empty string or an
empty list stands for the default. Secrets do not belong into this file.

This page is generated from the daemon's own table of keys; do not edit it by hand. See
[Refreshing this page](#refreshing-this-page).
)";

constexpr std::string_view kPathsIntroduction = R"(
## Fixed paths

| what | Linux | macOS |
|---|---|---|
)";

constexpr std::string_view kPathsNotes = R"(
`XDG_RUNTIME_DIR` must be set on Linux. Where `XDG_CONFIG_HOME` is not set, `~/.config` stands for it,
and `~/.local/share` for `XDG_DATA_HOME`. Where these three variables are set on macOS, they win there
too. All of them must be absolute. The socket's path may have at most 107 bytes.

The folder of socket and lock belongs to the user who runs the daemon and is closed to everybody else
(mode 0700); the daemon refuses a symbolic link or another user's folder in its place. The lock is
held as long as the daemon runs, so a second daemon in the same folder ends with exit code 1. The lock
file itself stays, and names the process that held it last.
)";

constexpr std::string_view kKeysIntroduction = R"(
## Keys

| key | what to write | default | meaning |
|---|---|---|---|
)";

constexpr std::string_view kNotation = R"(
- A **duration** is a string of decimal numbers with units, such as `"90s"`, `"1h30m"` or `"250ms"`;
  units are `ns`, `us`, `ms`, `s`, `m` and `h`. `"0"` needs no unit. A negative one is refused, and one
  of more than `876000h`, a hundred years.
- A **size** is a string of a number and a unit, such as `"512MiB"` or `"1.5g"`. Units are `k`, `m`, `g`,
  `t` and `p`, also written `kb` or `kib` and so on, in upper or lower case: always powers of 1024, as in
  the limits of a sandbox. Without a unit it is bytes.
- A **template** is a relative path with the fields `{sandbox_id}` and `{exec_id}`.

A file with every key, each with a value other than its default:

```toml
)";

constexpr std::string_view kClosing = R"(```

## Refreshing this page

```
cmake --preset dev && cmake --build --preset dev --target print_configuration_reference
build/dev/tests/print_configuration_reference > docs/configuration_reference.md
```
)";

FixedPaths shown_paths(Platform platform) {
  // Placeholders that pass for absolute paths; shown() takes the slash away again.
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
  page += path_row("output of execs, unless configured", &FixedPaths::default_exec_output_root);
  page += path_row("state, unless configured", &FixedPaths::default_state_root);
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

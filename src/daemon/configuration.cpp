// SPDX-License-Identifier: Apache-2.0
#include "daemon/configuration.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <set>

#include "base/check.h"
#include "base/unique_fd.h"

// Header-only and without exceptions: no shared library to load at start, and a syntax error is a
// value as every other failure.
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace agbox {
namespace {

// Far above any real file, far below what could hurt.
constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;

std::string_view kind_of(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "a list";
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a floating-point number";
    case toml::node_type::boolean:
      return "a boolean";
    case toml::node_type::date:
      return "a date";
    case toml::node_type::time:
      return "a time";
    case toml::node_type::date_time:
      return "a date and time";
    case toml::node_type::none:
      break;
  }
  return "nothing";
}

std::string line_of(const toml::node& node) {
  return "line " + std::to_string(node.source().begin.line);
}

// How many letters must be added, dropped or changed to come from one word to the other.
std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  for (std::size_t j = 0; j <= to.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= from.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const std::size_t changed = diagonal + (from[i - 1] == to[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row.back();
}

// A word of the user's may be as long as the file; beyond this it resembles none of ours anyway.
std::string_view comparable(std::string_view word) {
  return word.substr(0, 64);
}

// "runtime.idle_tll" resembles runtime.idle_ttl, and so does "idle_ttl" that lost its table.
const ConfigurationKey& nearest_key(std::string_view word) {
  word = comparable(word);
  return *std::ranges::min_element(configuration_keys(), {}, [&](const ConfigurationKey& key) {
    return std::min(edit_distance(word, key.full_name()), edit_distance(word, key.name));
  });
}

std::string_view nearest_table(std::string_view word) {
  word = comparable(word);
  return std::ranges::min_element(
             configuration_keys(), {},
             [&](const ConfigurationKey& key) { return edit_distance(word, key.table); })
      ->table;
}

const ConfigurationKey* find_key(std::string_view table, std::string_view name) {
  for (const ConfigurationKey& key : configuration_keys()) {
    if (key.table == table && key.name == name) return &key;
  }
  return nullptr;
}

bool is_known_table(std::string_view name) {
  return std::ranges::any_of(configuration_keys(),
                             [&](const ConfigurationKey& key) { return key.table == name; });
}

// A reader for one document: every step either takes what it understands or says what it is not.
class Reader {
 public:
  explicit Reader(const FixedPaths& paths)
      : file_(paths.config_file.string()), configuration_(default_configuration(paths)) {}

  Result<Configuration> read(const toml::table& document) {
    for (const auto& [name, node] : document) {
      AGBOX_TRY_VOID(read_top_level(name.str(), node));
    }
    if (is_set("runtime.cleanup_ttl") && !is_set("runtime.event_retention_ttl")) {
      configuration_.event_retention_ttl = configuration_.cleanup_ttl;
    }
    return configuration_;
  }

  std::unexpected<Error> undecodable(const std::string& why) const {
    return fail(Reason::InvalidArgument, "decode daemon config file " + file_ + ": " + why);
  }

 private:
  bool is_set(const std::string& key) const { return set_.contains(key); }

  Result<> read_top_level(std::string_view name, const toml::node& node) {
    const toml::table* table = node.as_table();
    if (!is_known_table(name)) {
      if (table != nullptr) {
        return undecodable(line_of(node) + ": unknown table [" + json_quote(name) +
                           "]; the nearest known one is [" + std::string(nearest_table(name)) +
                           "]");
      }
      return unknown_key(name, node);
    }
    if (table == nullptr) {
      return undecodable(line_of(node) + ": " + std::string(name) + " must be a table, but is " +
                         std::string(kind_of(node)) + "; write [" + std::string(name) +
                         "] on a line of its own and the keys below it");
    }
    for (const auto& [key, value] : *table) {
      AGBOX_TRY_VOID(read_key(name, key.str(), value));
    }
    return {};
  }

  Result<> read_key(std::string_view table, std::string_view name, const toml::node& node) {
    const ConfigurationKey* key = find_key(table, name);
    if (key == nullptr) return unknown_key(std::string(table) + "." + std::string(name), node);
    AGBOX_TRY(values, key->kind == ConfigurationKey::Kind::String ? one_string(*key, node)
                                                                  : strings(*key, node));
    if (values.empty()) return {};  // "" and [] stand for the default
    if (const auto assigned = key->assign(values, configuration_); !assigned) {
      return fail(Reason::InvalidArgument, describe(*key, values, node, assigned.error()));
    }
    set_.insert(key->full_name());
    return {};
  }

  Result<std::vector<std::string>> one_string(const ConfigurationKey& key, const toml::node& node) {
    const auto text = node.value_exact<std::string>();
    if (!text) return wrong_type(key, key.full_name(), "a string", node);
    if (text->empty()) return std::vector<std::string>{};
    return std::vector<std::string>{*text};
  }

  Result<std::vector<std::string>> strings(const ConfigurationKey& key, const toml::node& node) {
    const toml::array* list = node.as_array();
    if (list == nullptr) return wrong_type(key, key.full_name(), "a list of strings", node);
    std::vector<std::string> values;
    for (const toml::node& element : *list) {
      const auto text = element.value_exact<std::string>();
      if (!text) return wrong_type(key, "each element of " + key.full_name(), "a string", element);
      values.push_back(*text);
    }
    return values;
  }

  std::unexpected<Error> wrong_type(const ConfigurationKey& key, const std::string& subject,
                                    std::string_view expected, const toml::node& found) const {
    return undecodable(line_of(found) + ": " + subject + " must be " + std::string(expected) +
                       ", but is " + std::string(kind_of(found)) + "; write for example " +
                       std::string(key.name) + " = " + std::string(key.example));
  }

  std::unexpected<Error> unknown_key(std::string_view name, const toml::node& node) const {
    const ConfigurationKey& nearest = nearest_key(name);
    return undecodable(line_of(node) + ": unknown key " + json_quote(name) +
                       "; the nearest known one is " + nearest.full_name());
  }

  std::string describe(const ConfigurationKey& key, std::span<const std::string> values,
                       const toml::node& node, const Error& error) const {
    // Scripts that watch the daemon know this one sentence by its beginning.
    if (key.full_name() == "runtime.log_level") {
      return "parse log level " + json_quote(values[0]) + ": " + error.message() + " (" +
             key.full_name() + " on " + line_of(node) + " of " + file_ + ")";
    }
    return "parse " + key.full_name() + " from " + file_ + ": " + line_of(node) + ": " +
           error.message();
  }

  std::string file_;
  Configuration configuration_;
  std::set<std::string> set_;
};

Result<std::string> read_whole(int fd) {
  std::string text;
  text.resize(kMaxFileBytes + 1);
  std::size_t length = 0;
  while (length < text.size()) {
    const ssize_t count = ::read(fd, text.data() + length, text.size() - length);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::unexpected(errno_error("read", errno));
    if (count == 0) break;
    length += static_cast<std::size_t>(count);
  }
  if (length > kMaxFileBytes) {
    return fail(Reason::InvalidArgument, "the file is larger than 1 MiB");
  }
  text.resize(length);
  return text;
}

}  // namespace

Configuration default_configuration(const FixedPaths& paths) {
  Configuration configuration;
  configuration.state_root = paths.default_state_root;
  configuration.exec_output_root = paths.default_exec_output_root;
  for (const ConfigurationKey& key : configuration_keys()) {
    if (key.default_value.empty()) continue;
    const std::vector<std::string> values = {std::string(key.default_value)};
    AGBOX_CHECK(key.assign(values, configuration).has_value(), "a default of ours does not parse");
  }
  return configuration;
}

Result<Configuration> parse_configuration(std::string_view text, const FixedPaths& paths) {
  Reader reader(paths);
  const toml::parse_result document = toml::parse(text);
  if (!document) {
    const toml::parse_error& error = document.error();
    return reader.undecodable("line " + std::to_string(error.source().begin.line) + ", column " +
                              std::to_string(error.source().begin.column) + ": " +
                              std::string(error.description()));
  }
  return reader.read(document.table());
}

Result<Configuration> load_configuration(const FixedPaths& paths) {
  const std::string file = paths.config_file.string();
  const auto unreadable = [&](const std::string& why) {
    return fail(Reason::InvalidArgument, "read daemon config file " + file + ": " + why);
  };
  // O_NONBLOCK: a FIFO in its place must not make us wait for a writer.
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) {
    if (errno == ENOENT) return default_configuration(paths);
    return unreadable(std::generic_category().message(errno));
  }
  struct stat found{};
  if (::fstat(fd.get(), &found) != 0) return unreadable(std::generic_category().message(errno));
  if (!S_ISREG(found.st_mode)) return unreadable("it is not a regular file");
  const auto text = read_whole(fd.get());
  if (!text) return unreadable(text.error().message());
  return parse_configuration(*text, paths);
}

}  // namespace agbox

// SPDX-License-Identifier: Apache-2.0
#include "isolation/nft/table_difference.h"

#include <algorithm>
#include <vector>

#include "isolation/nft/netfilter.h"

namespace agbox::nft {
namespace {

using Difference = std::optional<std::string>;

std::vector<Element> sorted(std::vector<Element> elements) {
  std::ranges::sort(elements);
  return elements;
}

Difference between(const Set& wanted, const Set& seen) {
  const bool same_kind = wanted.key_type == seen.key_type && wanted.key_length == seen.key_length &&
                         wanted.flags == seen.flags && wanted.size == seen.size;
  if (!same_kind) return "has a different type";
  if (wanted.varies) return std::nullopt;
  if (sorted(wanted.elements) != sorted(seen.elements)) return "has different elements";
  return std::nullopt;
}

Difference between(const Timeouts& wanted, const Timeouts& seen) {
  if (wanted == seen) return std::nullopt;
  return "differ";
}

Difference between(const Chain& wanted, const Chain& seen) {
  if (wanted.hook != seen.hook) return "has a different hook";
  const std::size_t common = std::min(wanted.rules.size(), seen.rules.size());
  for (std::size_t i = 0; i < common; ++i) {
    if (wanted.rules[i] != seen.rules[i]) {
      return "has a different rule " + std::to_string(i + 1);
    }
  }
  if (wanted.rules.size() == seen.rules.size()) return std::nullopt;
  return "has " + std::to_string(seen.rules.size()) + " rules instead of " +
         std::to_string(wanted.rules.size());
}

// Compares parts by name: missing, different, or unexpected.
template <class Part>
Difference between_parts(const std::string& kind, const std::vector<Part>& wanted,
                         const std::vector<Part>& seen) {
  for (const Part& part : wanted) {
    const auto found = std::ranges::find(seen, part.name, &Part::name);
    if (found == seen.end()) return kind + " " + part.name + " is missing";
    if (const Difference what = between(part, *found)) return kind + " " + part.name + " " + *what;
  }
  for (const Part& part : seen) {
    if (std::ranges::find(wanted, part.name, &Part::name) == wanted.end()) {
      return kind + " " + part.name + " is unexpected";
    }
  }
  return std::nullopt;
}

Difference between_tables(const Table& wanted, const Table& seen) {
  if (wanted.flags != seen.flags) return "its flags differ";
  if (const Difference what = between_parts("set", wanted.sets, seen.sets)) return what;
  if (const Difference what = between_parts("timeouts", wanted.timeouts, seen.timeouts)) {
    return what;
  }
  return between_parts("chain", wanted.chains, seen.chains);
}

}  // namespace

std::optional<std::string> difference(const Table& wanted, const Table& seen) {
  const Difference what = between_tables(wanted, seen);
  if (!what) return std::nullopt;
  return "table " + wanted.name.text() + ": " + *what;
}

std::optional<std::string> difference(std::span<const Table> wanted, std::span<const Table> seen) {
  for (const Table& table : wanted) {
    const auto found = std::ranges::find(seen, table.name, &Table::name);
    if (found == seen.end()) return "table " + table.name.text() + " is missing";
    if (auto what = difference(table, *found)) return what;
  }
  return std::nullopt;
}

}  // namespace agbox::nft

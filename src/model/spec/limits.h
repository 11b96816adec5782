// SPDX-License-Identifier: Apache-2.0
// Resource limits as people write them ("1.5", "512m"), parsed once into numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace agbox {

class CpuLimit {
 public:
  // A number of CPUs: 2, 0.5, 1e-1. Below a thousandth of a CPU is refused.
  static Result<CpuLimit> parse(std::string_view text);
  std::int64_t millicores() const { return millicores_; }

 private:
  explicit CpuLimit(std::int64_t millicores) : millicores_(millicores) {}
  std::int64_t millicores_;
};

class ByteLimit {
 public:
  // A number and an optional unit of 1024: 512m, 4g, 1.5GiB, 10 MB, 10737418240.
  static Result<ByteLimit> parse(std::string_view text);
  std::int64_t bytes() const { return bytes_; }

 private:
  explicit ByteLimit(std::int64_t bytes) : bytes_(bytes) {}
  std::int64_t bytes_;
};

// nullopt for an empty text, which means no limit. An error begins with "<field>: <name> "<text>"".
template <class Limit>
Result<std::optional<Limit>> parse_limit(std::string_view field, std::string_view name,
                                         const std::string& text) {
  if (text.empty()) return std::nullopt;
  auto limit = Limit::parse(text);
  if (limit) return *limit;
  return std::unexpected(
      limit.error().within(std::string(field) + ": " + std::string(name) + " \"" + text + "\""));
}

// Of requests. `field` is the whole path of the field, as companion_containers[db].cpu_limit.
Result<> check_cpu_limit(const std::string& field, const std::string& text);
// Of an accepted text: not more than the engine has. 0: that is not known.
Result<> check_engine_cpus(const std::string& field, const std::string& text, std::int64_t cpus);
// Refuses also less than the minimum of container engines.
Result<> check_memory_limit(const std::string& field, const std::string& text);
Result<> check_disk_limit(const std::string& field, const std::string& text);

}  // namespace agbox

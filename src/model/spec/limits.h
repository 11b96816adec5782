// SPDX-License-Identifier: Apache-2.0
// Resource limits as people write them ("1.5", "512m"), parsed once into numbers.
#pragma once

#include <cstdint>
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

}  // namespace agbox

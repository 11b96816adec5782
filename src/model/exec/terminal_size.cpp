// SPDX-License-Identifier: Apache-2.0
#include "model/exec/terminal_size.h"

#include <limits>
#include <string>

#include "model/spec/request_checks.h"

namespace agbox {

Result<TerminalSize> parse_terminal_size(const char* field, const v1::TerminalSize& size) {
  constexpr std::uint32_t kMost = std::numeric_limits<std::uint16_t>::max();
  const auto check = [&](const char* name, std::uint32_t value) -> Result<> {
    if (value >= 1 && value <= kMost) return {};
    return invalid_argument(std::string(field) + "." + name + " is " + std::to_string(value) +
                            ", but must be 1 to " + std::to_string(kMost));
  };
  AGBOX_TRY_VOID(check("rows", size.rows()));
  AGBOX_TRY_VOID(check("columns", size.columns()));
  return TerminalSize{.rows = static_cast<std::uint16_t>(size.rows()),
                      .columns = static_cast<std::uint16_t>(size.columns())};
}

}  // namespace agbox

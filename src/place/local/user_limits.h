// SPDX-License-Identifier: Apache-2.0
// What the kernel counts per user (base/kernel_budget.h): what is used up now, and by which
// sandbox. Everything here may block, and reads what untrusted processes made as large as they
// like: the search for a holder is bounded.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "base/kernel_budget.h"

namespace agbox {

// The first process of a sandbox.
struct SandboxGuest {
  std::string sandbox_id;
  pid_t pid = 0;
};

struct BudgetHolder {
  std::string sandbox_id;
  std::string how_much;  // for people
  bool operator==(const BudgetHolder&) const = default;
};
using BudgetHolders = std::map<KernelBudget, BudgetHolder>;

// Those of which this process gets nothing now.
std::vector<KernelBudget> exhausted_budgets();

// The sandbox that has most of each, as far as it can be seen.
BudgetHolders find_holders(const std::vector<SandboxGuest>& guests,
                           const std::vector<KernelBudget>& budgets);

// For people: "inotify watches (fs.inotify.max_user_watches) of user 1000 are used up, most of them
// by sandbox s1 (192505)".
std::string describe_exhausted(KernelBudget budget, const BudgetHolders& holders);

}  // namespace agbox

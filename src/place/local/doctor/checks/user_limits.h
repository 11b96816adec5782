// SPDX-License-Identifier: Apache-2.0
// Is something left of what the kernel counts per user, which sandboxes share with their daemon?
#pragma once

#include "async/run_blocking.h"
#include "place/local/doctor/local_diagnosis.h"
#include "place/local/user_limits.h"

namespace agbox {

struct UserLimitsCheck {
  static constexpr std::string_view kName = "user-limits";

  std::vector<KernelBudget> exhausted;
  BudgetHolders holders{};

  static asio::awaitable<UserLimitsCheck> gather(const LocalCheckContext& context) {
    co_return co_await run_blocking(context.blocking, [&context] {
      UserLimitsCheck check{.exhausted = exhausted_budgets()};
      if (!check.exhausted.empty()) check.holders = find_holders(context.guests, check.exhausted);
      return check;
    });
  }

  void judge(Findings& findings) const {
    for (const KernelBudget budget : exhausted) {
      const std::string sentence = describe_exhausted(budget, holders);
      const auto holder = holders.find(budget);
      const std::string remedy =
          holder == holders.end()
              ? "end the process of this user that holds them, or raise that limit"
              : "agbox sandbox stop " + holder->second.sandbox_id;
      if (budget == KernelBudget::DescriptorsInFlight) {
        findings.broken(sentence + ": no command starts in any sandbox", remedy);
      } else {
        findings.warn(
            sentence + ": agboxd and agbox do without, other programs of this user may fail",
            remedy);
      }
    }
    if (exhausted.empty()) {
      findings.ok(
          "descriptors in flight, epoll watches and inotify watches are left for this user");
    }
  }
};

}  // namespace agbox

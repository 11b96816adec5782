// SPDX-License-Identifier: Apache-2.0
#include "place/local/doctor/local_diagnosis.h"

#include "place/local/doctor/checks/disk.h"
#include "place/local/doctor/checks/firewall.h"
#include "place/local/doctor/checks/guest_program.h"
#include "place/local/doctor/checks/lock.h"
#include "place/local/doctor/checks/network.h"
#include "place/local/doctor/checks/user_limits.h"

namespace agbox {
namespace {

template <class Check>
void judge(const Check& check, v1::DiagnoseResponse& response) {
  Findings findings(response, Check::kName);
  check.judge(findings);
}

}  // namespace

asio::awaitable<v1::DiagnoseResponse> run_local_checks(LocalCheckContext context) {
  v1::DiagnoseResponse response;
  judge(CapabilityCheck::gather(), response);
  judge(FirewallCheck::gather(context), response);
  judge(FirewallRepairsCheck::gather(context), response);
  judge(OtherFirewallsCheck::gather(context), response);
  judge(IpForwardCheck::gather(), response);
  judge(ResolversCheck::gather(context), response);
  judge(LockCheck::gather(context), response);
  judge(GuestProgramCheck::gather(context), response);
  judge(co_await DiskCheck::gather(context), response);
  judge(co_await UserLimitsCheck::gather(context), response);
  co_return response;
}

}  // namespace agbox

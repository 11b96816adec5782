// SPDX-License-Identifier: Apache-2.0
// What sandboxes need to reach the internet.
#pragma once

#include <optional>

#include "base/text_file.h"
#include "control/doctor/check_context.h"
#include "control/upkeep/host_resolvers.h"

namespace agbox {

// Does this host forward packets?
struct IpForwardCheck {
  static constexpr std::string_view kName = "ip-forward";
  std::optional<bool> is_enabled;  // nullopt if it cannot be read

  static IpForwardCheck gather(const CheckContext&) {
    const auto setting = read_text_file("/proc/sys/net/ipv4/ip_forward");
    if (!setting || setting->empty()) return {};
    return {.is_enabled = setting->front() == '1'};
  }

  void judge(Findings& findings) const {
    if (!is_enabled) return findings.unknown("net.ipv4.ip_forward cannot be read");
    if (*is_enabled) {
      return findings.ok("this host forwards packets of sandboxes (net.ipv4.ip_forward)");
    }
    findings.broken(
        "this host forwards no packets, so no sandbox reaches the internet: net.ipv4.ip_forward "
        "is 0",
        "sudo sysctl -w net.ipv4.ip_forward=1");
  }
};

// Do new sandboxes get DNS resolvers, and those of this host?
struct ResolversCheck {
  static constexpr std::string_view kName = "resolvers";
  std::vector<std::string> given;    // to new sandboxes
  std::vector<std::string> of_host;  // as the host has them now
  bool are_configured = false;       // by network.dns

  static ResolversCheck gather(const CheckContext& context) {
    const auto& dns = context.services.created_with.dns();
    const auto& files = context.options.resolver_files;
    ResolversCheck check{
        .given = {dns.begin(), dns.end()}, .of_host = {}, .are_configured = files.empty()};
    for (const Ipv4Address& resolver : host_resolvers(files)) {
      check.of_host.push_back(resolver.text());
    }
    return check;
  }

  void judge(Findings& findings) const {
    if (given.empty()) {
      return findings.broken(
          "no resolver can be given to a sandbox, so none is created: those of this host are all "
          "on loopback or IPv6",
          "set network.dns in config.toml, then: " + std::string(kRestartDaemon));
    }
    const std::string sentence = "new sandboxes use " + listed(given);
    if (are_configured) return findings.ok(sentence + " (network.dns)");
    if (given == of_host) return findings.ok(sentence + ", as this host does");
    findings.warn(sentence + ", as this host did before; it now uses " +
                      (of_host.empty() ? "none that a sandbox can reach" : listed(of_host)),
                  std::string(kRestartDaemon));
  }
};

}  // namespace agbox

// SPDX-License-Identifier: Apache-2.0
#include "cli/port_flag.h"

#include <charconv>
#include <cstdint>
#include <string_view>

#include "model/spec/ports.h"

namespace agbox::cli {
namespace {

std::expected<std::uint32_t, std::string> parse_port_number(const std::string& name,
                                                            const std::string& flag,
                                                            std::string_view text) {
  const std::string refused = "--port " + name + " \"" + flag + "\": ";
  std::uint32_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, number);
  if (rest != end || text.empty() || problem == std::errc::invalid_argument) {
    return std::unexpected(refused + "\"" + std::string(text) + "\" is not an integer");
  }
  if (problem != std::errc() || number < 1 || number > 65535) {
    return std::unexpected(refused + std::string(text) + " is out of range (1..65535)");
  }
  return number;
}

}  // namespace

std::expected<v1::PortMapping, std::string> parse_port_flag(const std::string& text) {
  if (text.empty()) return std::unexpected("--port: value must not be empty");
  const std::string flag = "--port \"" + text + "\": ";
  v1::PortMapping port;
  std::string_view ports = text;
  if (const std::size_t slash = ports.find('/'); slash != std::string_view::npos) {
    const std::string_view protocol = ports.substr(slash + 1);
    if (protocol.empty()) return std::unexpected(flag + "protocol must not be empty after '/'");
    const auto known = parse_protocol(protocol);
    if (!known) {
      return std::unexpected(flag + "unsupported protocol \"" + std::string(protocol) +
                             "\"; must be tcp, udp, or sctp");
    }
    port.set_protocol(*known);
    ports = ports.substr(0, slash);
  }
  const std::size_t last = ports.rfind(':');
  if (last == std::string_view::npos) {
    return std::unexpected(flag + "must be host:container[/proto]");
  }
  std::string_view host = ports.substr(0, last);
  if (const std::size_t colon = host.rfind(':'); colon != std::string_view::npos) {
    const std::string_view address = host.substr(0, colon);
    if (address != kPublishAddress) {
      return std::unexpected(flag + "cannot be published on \"" + std::string(address) +
                             "\"; ports of sandboxes are published on 127.0.0.1 only");
    }
    host = host.substr(colon + 1);
  }
  const auto host_port = parse_port_number("host_port", text, host);
  if (!host_port) return std::unexpected(host_port.error());
  const auto container_port = parse_port_number("container_port", text, ports.substr(last + 1));
  if (!container_port) return std::unexpected(container_port.error());
  port.set_host_port(*host_port);
  port.set_container_port(*container_port);
  return port;
}

// Raw, as in KeyValueFlag.
PortFlag::PortFlag(CLI::App& command)
    : ports_(command
                 .add_option(
                     "-p,--port", [](const CLI::results_t&) { return true; },
                     "Publish a port of the sandbox on 127.0.0.1, e.g. 8080:80 (repeatable)")
                 ->take_all()
                 ->type_name("HOST:CONTAINER[/PROTOCOL]")) {}

std::expected<std::vector<v1::PortMapping>, std::string> PortFlag::values() const {
  std::vector<v1::PortMapping> ports;
  for (const std::string& text : ports_->results()) {
    auto port = parse_port_flag(text);
    if (!port) return std::unexpected(port.error());
    ports.push_back(std::move(*port));
  }
  return ports;
}

}  // namespace agbox::cli

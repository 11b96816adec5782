// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/api/refusal.h"

#include <boost/json.hpp>

#include "base/utf8.h"
#include "engine/docker/api/json_reader.h"

namespace agbox {
namespace {

// The engine's text is stored in events and sent to clients, so it is bounded.
constexpr std::size_t kLongestEngineText = 4096;

// Of another container, or of a process of the host.
bool is_port_in_use(std::string_view text) {
  return text.contains("port is already allocated") || text.contains("address already in use");
}

EngineErrorKind kind_of(EngineCall call, int http_status, std::string_view text) {
  if (http_status == 404) return EngineErrorKind::NotFound;
  if (http_status == 409) return EngineErrorKind::Conflict;
  // Networks answer 403 where containers answer 409: a taken bridge name, an overlapping subnet,
  // remaining members. Authorization plugins use 403 in its own meaning.
  const bool is_network = call == EngineCall::NetworkCreate || call == EngineCall::NetworkRemove;
  if (http_status == 403 && is_network && !text.contains("authorization denied")) {
    return EngineErrorKind::Conflict;
  }
  if (call == EngineCall::ContainerStart && is_port_in_use(text)) return EngineErrorKind::PortInUse;
  if (http_status == 503) return EngineErrorKind::Unavailable;
  return EngineErrorKind::Refused;
}

// Invalid UTF-8 can be neither stored nor sent.
std::string to_shown_text(std::string_view text) {
  std::string whole = to_utf8(text);
  if (whole.size() <= kLongestEngineText) return whole;
  return std::string(utf8_prefix(whole, kLongestEngineText)) + "...";
}

// {"message": "..."}; Podman: {"cause": ..., "message": ..., "response": 409}.
std::string engine_text_of(std::string_view body) {
  const EngineResult<boost::json::value> document = parse_json(body);
  if (document) {
    std::string problem;
    const std::string message = JsonReader(*document, problem)["message"].text();
    if (!message.empty()) return to_shown_text(message);
  }
  while (!body.empty() && (body.back() == '\n' || body.back() == '\r')) body.remove_suffix(1);
  return to_shown_text(body);
}

}  // namespace

std::string describe(EngineCall call, std::string_view subject) {
  std::string text(route_of(call).attempt);
  if (!subject.empty()) text.append(" ").append(subject);
  return text;
}

EngineError refusal(EngineCall call, std::string_view subject, int http_status,
                    std::string_view body) {
  std::string text = engine_text_of(body);
  const std::string shown = text.empty() ? "HTTP status " + std::to_string(http_status) : text;
  return {kind_of(call, http_status, text),
          describe(call, subject) + ": Error response from daemon: " + shown, http_status,
          std::move(text)};
}

bool is_version_mismatch(const EngineError& error) {
  const std::string& text = error.engine_text();
  return error.http_status() == 400 && text.starts_with("client version ") &&
         (text.contains("is too new") || text.contains("is too old"));
}

std::string describe_unreachable(const EngineError& error) {
  if (error.kind() == EngineErrorKind::Unfit) return error.message();
  return "the Docker Engine is unreachable: " + error.message();
}

}  // namespace agbox

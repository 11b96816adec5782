// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/images/pull_progress.h"

#include <algorithm>

#include "engine/docker/api/json_reader.h"

namespace agbox {
namespace {

constexpr std::size_t kMostLayers = 1024;  // engines allow 127

EngineErrorKind kind_of(std::string_view text) {
  for (const std::string_view sign : {"not found", "manifest unknown", "does not exist"}) {
    if (text.contains(sign)) return EngineErrorKind::NotFound;
  }
  return EngineErrorKind::Refused;
}

}  // namespace

std::string describe_pull(const std::string& image, const PullProgress& pull) {
  std::string text = "pulling " + image + ": " + std::to_string(pull.layers_done) + " of " +
                     std::to_string(pull.layers) + " layers";
  if (pull.bytes_total > 0) {
    constexpr std::int64_t mib = 1 << 20;
    text += ", " + std::to_string(pull.bytes_done / mib) + " of " +
            std::to_string(pull.bytes_total / mib) + " MiB";
  }
  return text;
}

EngineResult<> PullTracker::take(std::string_view line) {
  AGBOX_TRY(document, parse_json(line));
  std::string problem;
  const JsonReader message(document, problem);
  std::string error = message["errorDetail"]["message"].text();
  if (error.empty()) error = message["error"].text();
  if (!error.empty()) {
    return std::unexpected(
        EngineError(kind_of(error), "Error response from daemon: " + error, 0, error));
  }
  const std::string status = message["status"].text();
  const std::string id = message["id"].text();
  const JsonReader detail = message["progressDetail"];
  const std::int64_t current = detail["current"].number();
  const std::int64_t total = detail["total"].number();
  if (!problem.empty()) return engine_fail(EngineErrorKind::Garbled, problem);

  // "Pulling from library/busybox" has the tag in place of a layer.
  if (id.empty() || status.starts_with("Pulling from ")) return {};
  if (layers_.size() >= kMostLayers && !layers_.contains(id)) return {};
  Layer& layer = layers_[id];
  if (status == "Downloading" && current >= 0 && total >= current) {
    layer.current = current;
    layer.total = total;
  }
  if (status == "Download complete") layer.current = layer.total;
  if (status == "Pull complete" || status == "Already exists") {
    layer.current = layer.total;
    layer.is_done = true;
  }
  return {};
}

PullProgress PullTracker::progress() const {
  PullProgress progress;
  for (const auto& [id, layer] : layers_) {
    ++progress.layers;
    if (layer.is_done) ++progress.layers_done;
    // Prevents overflow by hostile numbers: a layer counts for at most 1 PiB.
    constexpr std::int64_t kMost = std::int64_t{1} << 50;
    progress.bytes_done += std::min(layer.current, kMost);
    progress.bytes_total += std::min(layer.total, kMost);
  }
  return progress;
}

}  // namespace agbox

// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/workload/unmet_request.h"

namespace agbox {
namespace {

// Known to clients. `why` is without a full stop.
std::string no_disk_limit(const std::string& why) {
  return "disk_limit not supported by Docker runtime: " + why +
         ". Prerequisites: overlay2 storage driver on XFS with prjquota mount option and ftype=1. "
         "Run: docker info --format '{{.Driver}} {{.DockerRootDir}}' and findmnt -T "
         "<DockerRootDir> "
         "to diagnose. Or leave disk_limit out.";
}

std::string no_gpus(const std::string& why) {
  return "gpus: the Docker Engine cannot give GPUs to containers: " + why +
         ". Install the NVIDIA driver and the NVIDIA Container Toolkit, run \"nvidia-ctk runtime "
         "configure --runtime=docker\" and restart Docker; or leave gpus out.";
}

std::string no_init(const std::string& why) {
  return "the Docker Engine has no init for companion containers: " + why +
         ". Install docker-init (it is tini) in the engine's PATH, or set \"init-path\" in "
         "/etc/docker/daemon.json, and restart Docker.";
}

bool concerns_storage(const std::string& text) {
  return text.contains("storage-opt") || text.contains("inappropriate ioctl for device") ||
         text.contains("quota");
}

bool concerns_init(const std::string& text) {
  return text.contains("docker-init");
}

// The driver is missing, or is there and finds no GPU.
bool concerns_gpus(const std::string& text) {
  return text.contains("could not select device driver") || text.contains("nvidia");
}

}  // namespace

std::string disk_limit_shortcoming(const EngineIdentity& engine) {
  if (can_limit_files(engine.storage_driver, engine.backing_filesystem).value_or(true)) return {};
  const std::string& filesystem = engine.backing_filesystem;
  return no_disk_limit("its storage driver is " + engine.storage_driver +
                       (filesystem.empty() ? "" : " on " + filesystem));
}

EngineError in_terms_of(const SandboxSpec& spec, const EngineError& refusal) {
  if (refusal.kind() != EngineErrorKind::Refused) return refusal;
  const std::string& text = refusal.engine_text();
  std::string message;
  if (spec.disk_limit && concerns_storage(text)) {
    message = no_disk_limit(text);
  } else if (!spec.create_spec.gpus().empty() && concerns_gpus(text)) {
    message = no_gpus(text);
  } else {
    return refusal;
  }
  return {refusal.kind(), std::move(message), refusal.http_status(), text};
}

EngineError in_terms_of(const v1::CompanionContainerSpec& spec, const EngineError& refusal) {
  if (refusal.kind() != EngineErrorKind::Refused) return refusal;
  const std::string& text = refusal.engine_text();
  std::string message;
  if (!spec.disk_limit().empty() && concerns_storage(text)) {
    message = no_disk_limit(text);
  } else if (concerns_init(text)) {
    message = no_init(text);
  } else {
    return refusal;
  }
  return {refusal.kind(), "companion container \"" + spec.name() + "\": " + message,
          refusal.http_status(), text};
}

}  // namespace agbox

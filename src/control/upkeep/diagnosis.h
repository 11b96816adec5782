// SPDX-License-Identifier: Apache-2.0
// Looks at everything that sandboxes need of this machine and has it judged
// (model/doctor/diagnosis.h). It asks the engine, the kernel and the store anew, each with a
// deadline, and takes nothing from what the daemon believes already.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "agbox/v1/service.pb.h"
#include "base/result.h"
#include "control/directory.h"
#include "control/services.h"
#include "control/upkeep/janitor.h"
#include "model/doctor/diagnosis.h"

namespace agbox {

// What of the configuration cannot be seen in the services.
struct DiagnosisOptions {
  std::string engine_socket;
  std::filesystem::path lock_file;
  std::vector<std::filesystem::path> resolver_files;  // none: the configuration says the resolvers
};

// The images that the client names; refused where one cannot be the name of an image.
Result<std::vector<std::string>> parse_diagnose_request(const v1::DiagnoseRequest& request);

class Diagnosis {
 public:
  Diagnosis(Services& services, Directory& directory, Janitor& janitor, DiagnosisOptions options)
      : services_(services),
        directory_(directory),
        janitor_(janitor),
        options_(std::move(options)),
        turn_(services.loop.io().get_executor(), 1) {}
  Diagnosis(const Diagnosis&) = delete;

  // One at a time: whoever asks meanwhile waits. CANCELLED where the caller is.
  boost::asio::awaitable<Result<v1::DiagnoseResponse>> run(std::vector<std::string> images);

 private:
  boost::asio::awaitable<Result<EngineFacts>> look_at_engine();
  boost::asio::awaitable<ProofFacts> prove_live_sandboxes();
  boost::asio::awaitable<std::vector<std::string>> list_subnets();
  boost::asio::awaitable<Result<std::vector<ImageFacts>>> look_for_images(
      std::vector<std::string> wanted);
  boost::asio::awaitable<Result<std::vector<StrayContainer>>> look_for_strays();
  // Without what the engine has of it.
  Result<PoolFacts> look_at_pool(const std::vector<std::string>& engine_subnets) const;
  ResolverFacts look_at_resolvers() const;
  StoreFacts look_at_store() const;
  LockFacts look_at_lock() const;
  GuestProgramFacts look_for_guest_program() const;
  // Each filesystem once; the engine's too, where we know its folder.
  boost::asio::awaitable<std::vector<DiskFacts>> look_at_disks(const Result<EngineFacts>& engine);

  Services& services_;
  Directory& directory_;
  Janitor& janitor_;
  DiagnosisOptions options_;
  Semaphore turn_;
};

}  // namespace agbox

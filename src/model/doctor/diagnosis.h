// SPDX-License-Identifier: Apache-2.0
// Whether this machine has what sandboxes need: facts go in, findings in plain words come out, each
// with what mends it. Pure; control/upkeep/diagnosis.h gathers the facts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agbox/v1/service.pb.h"
#include "base/result.h"
#include "model/network/ipv4.h"

namespace agbox {

// Where the engine keeps what containers write.
struct LayerStorage {
  std::string driver;
  std::string backing_filesystem;  // empty where the engine does not say
  std::string root_folder;
  std::optional<bool> has_project_quota;  // of its mount; nothing where we do not see it
};

struct EngineFacts {
  std::string name;  // "Docker 28.5.2 (API 1.51)"
  std::string socket;
  std::string unfit;             // why it cannot run sandboxes; empty where it can
  std::string firewall_backend;  // empty before Docker 29, which knew iptables alone
  bool has_live_restore = false;
  LayerStorage storage;
};

// One table of ours.
struct TableFacts {
  std::string name;
  std::string difference;  // from what is wanted; empty where there is none
};

// A chain of somebody else's that drops every forwarded packet which it does not accept.
struct DroppingChain {
  std::string table;  // as `nft` takes it: "inet filter"
  std::string chain;
  bool accepts_nothing = false;    // no rule of it accepts, and none leads elsewhere
  bool accepts_sandboxes = false;  // one rule accepts all from our bridges, one all to them

  bool operator==(const DroppingChain&) const = default;
};

struct FirewallFacts {
  std::vector<TableFacts> tables;
  std::vector<DroppingChain> dropping_chains;
};

struct UnprovenSandbox {
  std::string sandbox_id;
  std::string why;
};

struct ProofFacts {
  std::size_t proven = 0;
  std::vector<UnprovenSandbox> unproven;
  std::vector<UnprovenSandbox> unasked;  // whose guest could not be asked; the rest of it holds
  std::size_t skipped = 0;               // there was no time left for them
  std::uint64_t repairs = 0;             // since the daemon's start
  std::string last_repair;
};

struct PoolFacts {
  Ipv4Network pool;
  std::vector<Ipv4Network> in_use;  // by this host, but for bridges of sandboxes
  std::vector<Ipv4Network> taken;   // by sandboxes, the engine and this host
};

struct ResolverFacts {
  std::vector<std::string> given;    // to new sandboxes
  std::vector<std::string> of_host;  // as the host has them now
  bool are_configured = false;       // network.dns says them
};

struct StoreFacts {
  std::string path;
  bool refuses_new_work = false;
  std::size_t waiting_changes = 0;
  std::vector<std::string> unreadable_sandboxes;
};

struct LockFacts {
  std::string path;
  std::optional<bool> is_held;  // by this daemon, under this name; nothing where nobody can say
};

struct GuestProgramFacts {
  std::string path;
  bool is_there = false;
};

struct DiskFacts {
  std::string what;  // "output of commands, store"
  std::string path;
  bool holds_output = false;  // of commands, which are refused while the reserve is not free
  std::uint64_t left = 0;
  std::uint64_t reserve = 0;
  std::string problem{};  // why it could not be looked at; empty where it could
};

struct ImageFacts {
  std::string name;
  bool is_there = false;
  bool is_of_sandbox = false;  // else the client asked for it
};

// A primary container that carries our label and is in no record of ours.
struct StrayContainer {
  std::string container_name;
  std::string sandbox_id;
};

struct DiagnosisFacts {
  bool has_net_admin = false;
  Result<EngineFacts> engine;
  Result<FirewallFacts> firewall;
  ProofFacts proofs;
  std::optional<bool> forwards_packets;  // net.ipv4.ip_forward; nothing where it cannot be read
  Result<PoolFacts> pool;
  ResolverFacts resolvers;
  StoreFacts store;
  LockFacts lock;
  GuestProgramFacts guest_program;
  std::vector<DiskFacts> disks;
  Result<std::vector<ImageFacts>> images;
  Result<std::vector<StrayContainer>> strays;
};

v1::DiagnoseResponse judge_host(const DiagnosisFacts& facts);

// Whether a container's layer can be given a limit; nothing where nobody can say.
std::optional<bool> has_layer_quota(const LayerStorage& storage);

}  // namespace agbox

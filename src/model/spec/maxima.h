// SPDX-License-Identifier: Apache-2.0
// How much of everything one daemon takes; beyond it the answer is RESOURCE_EXHAUSTED. Chosen far
// above honest use and far below what would hurt the daemon.
#pragma once

#include <cstddef>

namespace agbox::maxima {

inline constexpr std::size_t kSandboxes = 4096;  // undeleted; a /16 holds as many /28
inline constexpr std::size_t kSpecBytes = std::size_t{2} << 20;
inline constexpr std::size_t kConfigYamlBytes = std::size_t{256} << 10;
// With its aliases expanded.
inline constexpr std::size_t kConfigYamlWeight = std::size_t{4} << 20;
// Of all undeleted sandboxes: their specs are in memory.
inline constexpr std::size_t kAllSpecBytes = std::size_t{64} << 20;
// That wait for the engine's first answer, or for a create that does.
inline constexpr std::size_t kWaitingCalls = 8192;
inline constexpr std::size_t kLabels = 64;
inline constexpr std::size_t kLabelKeyBytes = 256;
inline constexpr std::size_t kLabelValueBytes = 4096;
inline constexpr std::size_t kHooks = 64;  // of one companion
inline constexpr std::size_t kEnvs = 4096;
inline constexpr std::size_t kCommandTokens = 16384;
inline constexpr std::size_t kImageBytes = 1024;
// Of one sandbox.
inline constexpr std::size_t kMounts = 64;
inline constexpr std::size_t kCopies = 64;
inline constexpr std::size_t kExcludePatterns = 1024;  // of one copy
inline constexpr std::size_t kPorts = 128;

// Running ones. Their requests are in memory until they end; those of one sandbox, also all at once
// after a lost connection, have to fit into the queue towards its guest.
inline constexpr std::size_t kExecs = 4096;
inline constexpr std::size_t kExecsPerSandbox = 512;
// Of one request: with what else a status says it stays below the 4 MiB that clients take.
inline constexpr std::size_t kExecBytes = (std::size_t{4} << 20) - (std::size_t{64} << 10);
inline constexpr std::size_t kExecBytesPerSandbox = std::size_t{12} << 20;
inline constexpr std::size_t kAllExecBytes = std::size_t{256} << 20;

// At one time, of all execs; 256 MiB where all of them stall.
inline constexpr std::size_t kOutputReaders = 2048;
// Of logs of containers, at one time. Each has a connection to the engine, and the control thread
// reads it.
inline constexpr std::size_t kLogReaders = 256;

// Of the usage of sandboxes, at one time.
inline constexpr std::size_t kStatsWatchers = 256;

// Calls that hold a sandbox with a lease, at one time.
inline constexpr std::size_t kHolds = 8192;

// Subscriptions to events, at one time; of slow subscribers each has a page of events in memory.
inline constexpr std::size_t kEventStreams = 8192;
// Clients that are attached to execs or read their output, at one time.
inline constexpr std::size_t kOutputStreams = 4096;

// Copies into and out of running sandboxes, at one time: each costs a process inside, a pipe and a
// buffer.
inline constexpr std::size_t kFileCopies = 64;
inline constexpr std::size_t kFileCopiesPerSandbox = 8;

}  // namespace agbox::maxima

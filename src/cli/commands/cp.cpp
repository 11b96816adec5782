// SPDX-License-Identifier: Apache-2.0
// agbox cp: copies files between this machine and a running sandbox.
#include <agbox/file_copy.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <utility>
#include <variant>

#include "base/clock.h"
#include "base/overloaded.h"
#include "cli/commands/commands.h"
#include "cli/copy_location.h"
#include "cli/daemon_client.h"
#include "cli/format/elapsed.h"
#include "cli/format/message_json.h"
#include "cli/format/printable.h"
#include "cli/id_lookup.h"
#include "cli/idle_resume.h"
#include "cli/interrupt.h"
#include "model/spec/limits.h"

namespace agbox::cli {

namespace {

using namespace std::chrono_literals;

struct CpFlags {
  std::string source;
  std::string target;
  bool as_root = false;
  std::string max_size;
  bool json = false;
  bool no_resume = false;
};

constexpr auto kQuietAtFirst = 1s;
constexpr auto kBetweenReports = 200ms;

std::string size_text(std::uint64_t bytes) {
  constexpr std::uint64_t kKib = 1024;
  if (bytes < kKib) return std::to_string(bytes) + " B";
  if (bytes < kKib * kKib) return std::to_string(bytes / kKib) + " KiB";
  return std::to_string(bytes / kKib / kKib) + " MiB";
}

std::string count_text(std::uint64_t entries) {
  return std::to_string(entries) + (entries == 1 ? " entry" : " entries");
}

// Shows on a terminal how far a copy is that takes long.
class CopyProgress {
 public:
  CopyProgress(Console& console, const Clock& clock)
      : console_(console), clock_(clock), next_(clock.boot_now() + kQuietAtFirst) {}

  void show(const sdk::FileCopyProgress& progress) {
    if (!console_.is_terminal() || clock_.boot_now() < next_) return;
    next_ = clock_.boot_now() + kBetweenReports;
    console_.status((progress.entries > 0 ? count_text(progress.entries) + ", " : "") +
                    size_text(progress.bytes));
  }

 private:
  Console& console_;
  const Clock& clock_;
  BootTime next_;
};

using Copy = std::function<sdk::Result<sdk::FileCopyResult>(const sdk::RawClient&,
                                                            const sdk::FileCopyOptions&)>;

// The copy that a command line stands for; the error is a usage error.
std::expected<Copy, std::string> copy_between(const CopyLocation& source,
                                              const CopyLocation& target) {
  using Found = std::expected<Copy, std::string>;
  return std::visit(
      Overloaded{
          [](const LocalPath& from, const SandboxPath& to) -> Found {
            return [from, to](const sdk::RawClient& client, const sdk::FileCopyOptions& options) {
              return sdk::copy_in(client, from.path, to.sandbox_id, to.path, options);
            };
          },
          [](const SandboxPath& from, const LocalPath& to) -> Found {
            return [from, to](const sdk::RawClient& client, const sdk::FileCopyOptions& options) {
              return sdk::copy_out(client, from.sandbox_id, from.path, to.path, options);
            };
          },
          [](const TarStream&, const SandboxPath& to) -> Found {
            if (::isatty(STDIN_FILENO) != 0) {
              return std::unexpected(
                  "- reads a tar archive from stdin, which is a terminal: use a pipe");
            }
            return [to](const sdk::RawClient& client, const sdk::FileCopyOptions& options) {
              return sdk::copy_tar_in(client, STDIN_FILENO, to.sandbox_id, to.path, options);
            };
          },
          [](const SandboxPath& from, const TarStream&) -> Found {
            if (::isatty(STDOUT_FILENO) != 0) {
              return std::unexpected(
                  "- writes a tar archive to stdout, which is a terminal: use a pipe or a file");
            }
            return [from](const sdk::RawClient& client, const sdk::FileCopyOptions& options) {
              return sdk::copy_tar_out(client, from.sandbox_id, from.path, STDOUT_FILENO, options);
            };
          },
          [](const SandboxPath&, const SandboxPath&) -> Found {
            return std::unexpected(
                "cp copies between this machine and a sandbox: to copy between sandboxes, use "
                "\"agbox cp SANDBOX:PATH - | agbox cp - SANDBOX:PATH\"");
          },
          [](const auto&, const auto&) -> Found {
            return std::unexpected(
                "cp copies between this machine and a sandbox: one path must be SANDBOX:PATH");
          },
      },
      source, target);
}

int fail_copy(Console& console, const CpFlags& flags, const Interrupt& interrupt,
              const sdk::Error& error) {
  if (error.kind == sdk::ErrorKind::Cancelled) {
    console.error("Copy cancelled; files that were complete stay.");
    return interrupt.token().stop_requested() ? interrupt.exit_code() : kRuntimeError;
  }
  return fail_call(console, "copy " + flags.source + " to " + flags.target, error);
}

// Replaces the beginning of a sandbox ID by the ID, and resumes a sandbox that was idle. False if
// that failed; the reason is then on stderr.
bool find_and_resume(Console& console, const sdk::RawClient& client, const CpFlags& flags,
                     const Interrupt& interrupt, CopyLocation& location) {
  auto* const inside = std::get_if<SandboxPath>(&location);
  if (inside == nullptr) return true;
  const auto sandbox = find_sandbox(client, inside->sandbox_id);
  if (!sandbox) {
    fail_call(console, "copy " + flags.source + " to " + flags.target, sandbox.error());
    return false;
  }
  inside->sandbox_id = sandbox->sandbox_id();
  return flags.no_resume || resume_if_idle(console, client, *sandbox, interrupt);
}

int copy_files(Console& console, const CpFlags& flags) {
  auto source = parse_copy_location(flags.source);
  if (!source) return refuse_usage(console, source.error());
  auto target = parse_copy_location(flags.target);
  if (!target) return refuse_usage(console, target.error());
  if (const auto copy = copy_between(*source, *target); !copy) {
    return refuse_usage(console, copy.error());
  }
  if (flags.json && std::holds_alternative<TarStream>(*target)) {
    return refuse_usage(console, "--json prints to stdout, where the tar archive goes");
  }
  sdk::FileCopyOptions options{.as_root = flags.as_root};
  const auto max_size = parse_limit<ByteLimit>("--max-size", "size", flags.max_size);
  if (!max_size) return refuse_usage(console, max_size.error().message());
  if (*max_size) options.max_bytes = static_cast<std::uint64_t>((*max_size)->bytes());
  const auto client = open_client(console);
  if (!client) return kRuntimeError;
  const SystemClock clock;
  const BootTime began = clock.boot_now();
  const Interrupt interrupt;
  for (CopyLocation* const location : {&*source, &*target}) {
    if (find_and_resume(console, *client, flags, interrupt, *location)) continue;
    return interrupt.token().stop_requested() ? interrupt.exit_code()
                                              : static_cast<int>(kRuntimeError);
  }
  const auto copy = copy_between(*source, *target);
  CopyProgress progress(console, clock);
  options.on_progress = [&](const sdk::FileCopyProgress& now) { progress.show(now); };
  options.stop = interrupt.token();
  const auto copied = (*copy)(*client, options);
  if (!copied) return fail_copy(console, flags, interrupt, copied.error());
  if (copied->notes > 0) {
    console.error("Warning: " + count_text(copied->notes) +
                  " left out or changed while copied, such as " +
                  printable_line(copied->first_note));
  }
  if (flags.json) {
    v1::CopySummary summary;
    summary.set_entries(copied->entries);
    summary.set_bytes(copied->bytes);
    summary.set_notes(copied->notes);
    summary.set_first_note(copied->first_note);
    console.out(message_json(summary));
  } else {
    console.error("Copied " + count_text(copied->entries) + ", " + size_text(copied->bytes) +
                  ", to " + flags.target + " in " + seconds_text(clock.boot_now() - began) + ".");
  }
  return kSuccess;
}

}  // namespace

void add_cp(CommandLine& line, CLI::App& parent) {
  auto [command, flags] =
      line.add(parent, "cp", "Copy files between this machine and a running sandbox", copy_files);
  command
      .add_option("source", flags.source,
                  "PATH, SANDBOX:PATH, or - for a tar archive on stdin; PATH/. is the content of "
                  "a directory")
      ->required()
      ->type_name("PATH");
  command
      .add_option("target", flags.target, "SANDBOX:PATH, PATH, or - for a tar archive on stdout")
      ->required()
      ->type_name("PATH");
  command.add_flag("--as-root", flags.as_root,
                   "Read or write as root of the sandbox instead of its user");
  command
      .add_option("--max-size", flags.max_size,
                  "Stop after so much data, such as 500g; 64 GiB by default")
      ->type_name("SIZE");
  command.add_flag("--no-resume", flags.no_resume,
                   "Do not resume a sandbox that was stopped because it was idle");
  command.add_flag("--json", flags.json, "Print the number of entries and bytes as JSON");
}

}  // namespace agbox::cli

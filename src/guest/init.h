// SPDX-License-Identifier: Apache-2.0
// PID 1 of a sandbox's primary container: prepares it, waits for the daemon's Go, starts the
// image's entrypoint, and runs until it is stopped or the caller's command ends.
//
//   Fresh --Welcome--> Prepared --Go--> Entrypoint --enter--> Passed
//                                          |
//                                          +-- exited or timed out --> Failed
//
// One thread, one loop, no exceptions. It keeps running while the daemon is unreachable.
//
// In a companion it is not PID 1: the engine starts it next to what the container runs, to run
// execs. Then it prepares nothing, starts nothing else, and neither stops nor signals what is not
// of its execs.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "agbox/guest/v1/link.pb.h"
#include "base/unique_fd.h"
#include "guest/child.h"
#include "guest/connection_probes.h"
#include "guest/daemon_link.h"
#include "guest/enter_socket.h"
#include "guest/execs.h"
#include "guest/file_transfers.h"
#include "guest/incoming_trees.h"
#include "guest/output_relay.h"
#include "guest/preparation.h"

namespace agbox::guest {

class Init {
 public:
  // Runs until the container must end; returns its exit code.
  static int run();
  // The same in a container that runs already. Its execs are run by `user` unless they say
  // otherwise, as in an image's USER.
  static int join(std::string user);

 private:
  // What it joined.
  struct Joined {
    std::string user;
    std::string working_directory;  // in which the engine started it: that of the image
  };

  Init(UniqueFd root, UniqueFd null, UniqueFd signals, std::optional<Joined> joined);
  static int run(std::optional<Joined> joined);

  int loop();
  void round();
  void end_everything_else();

  // Messages from the daemon.
  v1::Hello hello() const;
  bool on_message(v1::ToGuest& message);
  bool on_challenge(const v1::Challenge& challenge);
  bool on_welcome(const v1::Welcome& welcome);
  bool on_go(const v1::Go& go);
  bool on_start_exec(v1::StartExec order);
  bool on_attach_input(const v1::AttachInput& order);
  bool on_receive_tree(const v1::ReceiveTree& order);
  bool on_put_files(const v1::PutFiles& order);
  bool on_get_files(const v1::GetFiles& order);
  void on_stop();

  // The image's entrypoint and the caller's command.
  void start();
  bool runtime_user_runs();
  void start_entrypoint();
  void start_command();
  std::expected<pid_t, NotStarted> start_main(ChildProgram program);
  void on_entered(Entered entered);
  void on_entrypoint_late();
  void pass();
  void fail(v1::EntrypointFailed::Cause cause, int code, std::string detail);

  // Signals and child processes.
  void on_signal();
  void reap();
  void on_exit(pid_t pid, int status);
  bool command_is_gone() const;
  bool command_runs() const;
  bool belongs_to_main(const Process& process) const;
  void end(int code);

  UniqueFd root_;
  UniqueFd null_;
  UniqueFd signals_;
  std::optional<Joined> joined_;
  Moment needless_at_;  // of one that joined
  TreeKiller::SignalEveryProcess signal_every_process_;
  std::optional<DaemonLink> link_;
  std::string secret_;

  v1::Phase phase_ = v1::PHASE_FRESH;
  Preparation preparation_;
  v1::Go go_;
  v1::EnterReply enter_reply_;
  v1::EntrypointFailed failure_;
  Moment entrypoint_deadline_;

  Tail tail_;
  OutputRelay out_;
  OutputRelay err_;
  EnterSocket enter_socket_;
  pid_t main_ = 0;                // the entrypoint, or the command if there is none; 0: not running
  std::optional<int> main_code_;  // once it has ended
  Entered entered_;
  Execs execs_;
  ConnectionProbes connection_probes_;
  IncomingTrees incoming_trees_;
  FileTransfers file_transfers_;
  bool greeted_ = false;              // the daemon knows our execs
  std::optional<Moment> stopped_at_;  // when a stop was requested
  std::optional<int> exit_code_;
};

}  // namespace agbox::guest

// SPDX-License-Identifier: Apache-2.0
// Handles the daemon's messages: handshake, Go, and execs.
#include <chrono>
#include <utility>

#include "guest/build_id.h"
#include "guest/init.h"
#include "guest/privilege.h"
#include "guestwire/place.h"
#include "guestwire/proof.h"

namespace agbox::guest {

using std::chrono::milliseconds;

v1::Hello Init::hello() const {
  v1::Hello hello;
  hello.set_protocol_min(guestwire::kProtocolMin);
  hello.set_protocol_max(guestwire::kProtocolMax);
  hello.set_build_id(build_id());
  hello.set_phase(phase_);
  hello.set_has_secret(!secret_.empty());
  if (phase_ == v1::PHASE_FAILED) *hello.mutable_failure() = failure_;
  return hello;
}

bool Init::on_message(v1::ToGuest& message) {
  switch (message.body_case()) {
    case v1::ToGuest::kChallenge:
      return on_challenge(message.challenge());
    case v1::ToGuest::kWelcome:
      return on_welcome(message.welcome());
    case v1::ToGuest::kGo:
      return on_go(message.go());
    case v1::ToGuest::kPing: {
      v1::ToDaemon answer;
      answer.mutable_pong()->set_id(message.ping().id());
      link_->send(answer);
      return true;
    }
    case v1::ToGuest::kStop:
      on_stop();
      return true;
    case v1::ToGuest::kTryConnection:
      connection_probes_.begin(message.try_connection());
      return true;
    case v1::ToGuest::kReceiveTree:
      return on_receive_tree(message.receive_tree());
    case v1::ToGuest::kPutFiles:
      return on_put_files(message.put_files());
    case v1::ToGuest::kGetFiles:
      return on_get_files(message.get_files());
    case v1::ToGuest::kCancelFiles:
      file_transfers_.cancel(message.cancel_files().id());
      return true;
    case v1::ToGuest::kStartExec:
      return on_start_exec(std::move(*message.mutable_start_exec()));
    case v1::ToGuest::kCancelExec:
      execs_.cancel(message.cancel_exec().exec_id(),
                    milliseconds(message.cancel_exec().grace_ms()));
      return true;
    case v1::ToGuest::kForgetExec:
      execs_.forget(message.forget_exec().exec_id());
      return true;
    case v1::ToGuest::kAttachInput:
      return on_attach_input(message.attach_input());
    case v1::ToGuest::kEndInput:
      execs_.end_input(message.end_input().exec_id());
      return true;
    case v1::ToGuest::kResizeTerminal:
      execs_.resize_terminal(message.resize_terminal().exec_id(),
                             terminal_size_of(message.resize_terminal().size()));
      return true;
    case v1::ToGuest::kSignalExec:
      execs_.signal(message.signal_exec().exec_id(),
                    static_cast<int>(message.signal_exec().number()));
      return true;
    case v1::ToGuest::BODY_NOT_SET:
      break;
  }
  return false;  // unknown message of another protocol version
}

bool Init::on_challenge(const v1::Challenge& challenge) {
  if (challenge.protocol() < guestwire::kProtocolMin ||
      challenge.protocol() > guestwire::kProtocolMax ||
      challenge.nonce().size() != guestwire::kNonceSize) {
    return false;
  }
  v1::ToDaemon answer;
  v1::Proof* proof = answer.mutable_proof();
  if (!secret_.empty()) proof->set_mac(guestwire::prove(secret_, challenge.nonce()));
  link_->send(answer);
  return true;
}

bool Init::on_welcome(const v1::Welcome& welcome) {
  if (phase_ == v1::PHASE_FRESH) {
    preparation_ =
        joined_ ? prepare_joined(root_.get(), joined_->user) : prepare(root_.get(), welcome);
    *enter_reply_.mutable_user() = preparation_.report.user();
    if (const auto dropped = drop_capabilities(); !dropped) {
      preparation_.report.set_failure(dropped.error().message());
    }
    phase_ = v1::PHASE_PREPARED;
  }
  v1::ToDaemon answer;
  *answer.mutable_prepared() = preparation_.report;
  link_->send(answer);
  greeted_ = true;
  execs_.report_all();
  link_->accepted();
  return true;
}

bool Init::on_go(const v1::Go& go) {
  if (phase_ == v1::PHASE_FRESH || !preparation_.report.failure().empty() ||
      go.secret().size() != guestwire::kSecretSize) {
    return false;
  }
  if (phase_ != v1::PHASE_PREPARED) return true;  // repeated after a lost connection
  secret_ = go.secret();
  go_ = go;
  go_.clear_secret();
  start();
  return true;
}

bool Init::on_receive_tree(const v1::ReceiveTree& order) {
  auto stream = link_->take_descriptors();
  if (!stream || phase_ != v1::PHASE_PREPARED || !preparation_.report.failure().empty()) {
    return false;
  }
  incoming_trees_.begin(order, std::move(stream->first), preparation_.runtime_user, null_.get());
  return true;
}

bool Init::on_put_files(const v1::PutFiles& order) {
  auto stream = link_->take_descriptors();
  if (!stream || phase_ != v1::PHASE_PASSED) return false;
  file_transfers_.put(order, std::move(stream->first), preparation_.runtime_user, null_.get());
  return true;
}

bool Init::on_get_files(const v1::GetFiles& order) {
  auto stream = link_->take_descriptors();
  if (!stream || phase_ != v1::PHASE_PASSED) return false;
  file_transfers_.get(order, std::move(stream->first), preparation_.runtime_user, null_.get());
  return true;
}

bool Init::on_start_exec(v1::StartExec message) {
  auto files = link_->take_descriptors();
  if (!files || phase_ != v1::PHASE_PASSED) return false;
  const std::string id = message.exec_id();
  if (joined_ && message.working_directory().empty()) {
    message.set_working_directory(joined_->working_directory);
  }
  execs_.start(id, exec_order_of(std::move(message),
                                 {preparation_.runtime_user, preparation_.runtime_user_name},
                                 {std::move(files->first), std::move(files->second)}));
  return true;
}

bool Init::on_attach_input(const v1::AttachInput& order) {
  auto pipe = link_->take_descriptors();
  if (!pipe) return false;
  execs_.attach_input(order.exec_id(), order.id(), std::move(pipe->first));
  return true;
}

}  // namespace agbox::guest

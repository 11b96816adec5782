// SPDX-License-Identifier: Apache-2.0
// The untrusted guest in a program of guest_link_fuzz: its connections, and messages of every kind
// whose fields the program chooses.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "agbox/guest/v1/link.pb.h"
#include "fuzz/guest_link/guest_socket.h"
#include "fuzz/guest_link/program.h"
#include "fuzz/guest_link/promises.h"
#include "guestwire/frame.h"
#include "guestwire/proof.h"

namespace agbox::guestlink {

class GuestSide {
 public:
  explicit GuestSide(Promises& promises) : promises_(promises) {}

  const std::vector<GuestSocket>& connections() const { return connections_; }
  std::size_t bytes_kept() const { return text_.capacity() + held_.capacity(); }

  // Sends and reads all that the kernel takes and has. True if there was any.
  bool exchange() {
    bool has_exchanged = false;
    for (GuestSocket& connection : connections_) {
      has_exchanged |= connection.flush();
      has_exchanged |= connection.receive();
      while (const auto message = connection.next()) hear(connection, *message);
    }
    return has_exchanged;
  }
  void read_on_every_connection() {
    for (GuestSocket& connection : connections_) connection.set_reads(true);
  }

  void perform(const Step& step, const std::filesystem::path& directory) {
    const unsigned argument = step.arguments[0];
    switch (step.letter) {
      case 'c':
        return connect(directory);
      case 's':
        selected_ = argument;
        return;
      case 'd':
        descriptors_ = argument;
        return;
      case '"':
        text_ = step.bytes;
        return;
      case '*':
        if (text_.size() <= kMaxText / 2) text_ += text_;
        return;
      case '#':
        number_ = 0;
        for (const char byte : step.bytes) {
          number_ = number_ << 8 | static_cast<unsigned char>(byte);
        }
        return;
      case '{':
        is_holding_ = true;
        return;
      case '}':
        is_holding_ = false;
        return send(std::exchange(held_, {}));
      case '/':
        send(held_.substr(0, argument));
        held_.erase(0, argument);
        return;
      case 'b':
        return send_or_hold(step.bytes);
      case 'f':
        return send_or_hold(step.bytes.empty() ? std::string(guestwire::kFrameHeader, '\0')
                                               : guestwire::frame(step.bytes));
    }
    if (selected_ >= connections_.size() || bytes_made_ > kMaxMade) return;
    GuestSocket& connection = connections_[selected_];
    switch (step.letter) {
      case 'x':
        return connection.close();
      case 'w':
        return connection.close_for_writing();
      case 'q':
        return connection.set_reads(!connection.reads());
      default:
        return send_or_hold(guestwire::frame(message(step, connection)));
    }
  }

 private:
  // What bounds the time and the memory of one input.
  static constexpr std::size_t kMaxConnections = 16;
  static constexpr std::size_t kMaxText = std::size_t{1} << 20;
  static constexpr std::size_t kMaxMade = std::size_t{4} << 20;

  void connect(const std::filesystem::path& directory) {
    if (connections_.size() == kMaxConnections) return;
    auto connection = GuestSocket::connect(directory);
    if (!connection) return;
    promises_.connection_opened();
    selected_ = connections_.size();
    connections_.push_back(std::move(*connection));
  }

  void send_or_hold(std::string bytes) {
    bytes_made_ += bytes.size();
    if (!is_holding_) return send(std::move(bytes));
    held_ += bytes;
  }
  void send(std::string bytes) {
    if (selected_ >= connections_.size()) return;
    connections_[selected_].send(std::move(bytes), std::exchange(descriptors_, 0));
  }

  void hear(const GuestSocket& connection, const guest::v1::ToGuest& message) {
    if (message.has_welcome() && connection.has_always_read()) {
      promises_.welcomed(connection.proved);
    }
    if (message.has_ping()) last_ping_ = message.ping().id();
    if (message.has_attach_input()) last_input_ = message.attach_input().id();
    if (message.has_try_connection()) last_probe_ = message.try_connection().id();
    if (message.has_start_exec()) {
      promises_.order_arrived(message.start_exec().output_limit_bytes());
    }
  }

  guest::v1::ToDaemon message(const Step& step, GuestSocket& connection) {
    const auto [first, second, third] = step.arguments;
    guest::v1::ToDaemon message;
    switch (step.letter) {
      case 'h':
        fill(*message.mutable_hello(), first, second, third);
        break;
      case 'p':
        message.mutable_proof()->set_mac(proof(connection, first));
        break;
      case 'r':
        fill(*message.mutable_prepared(), first);
        break;
      case 'k':
        fill(*message.mutable_execs_known(), first, second);
        break;
      case 'y':
        message.mutable_entrypoint_passed();
        break;
      case 'n':
        fill(*message.mutable_entrypoint_failed(), first);
        break;
      case 'o':
        message.mutable_pong()->set_id(first == 0 ? last_ping_ : number_);
        break;
      case 't': {
        guest::v1::ConnectionTried* tried = message.mutable_connection_tried();
        tried->set_id(first == 0 ? last_probe_ : number_);
        tried->set_outcome(static_cast<guest::v1::ConnectionTried::Outcome>(second));
        tried->set_detail(text_);
        break;
      }
      case 'e':
        fill(*message.mutable_exec_ended(), first, second);
        break;
      case 'i': {
        guest::v1::InputAttached* attached = message.mutable_input_attached();
        attached->set_id(first == 0 ? last_input_ : number_);
        attached->set_outcome(static_cast<guest::v1::InputAttached::Outcome>(second));
        attached->set_position(number_);
        attached->set_detail(text_);
        break;
      }
      case 'u':
        message.mutable_exec_truncated()->set_exec_id(exec_id(first));
        break;
    }
    return message;
  }

  void fill(guest::v1::Hello& hello, unsigned phase, unsigned secret, unsigned protocol) const {
    hello.set_protocol_min(protocol == 0 ? 1 : static_cast<std::uint32_t>(number_));
    hello.set_protocol_max(protocol == 0 ? 2 : static_cast<std::uint32_t>(number_ >> 32));
    hello.set_build_id(text_);
    hello.set_phase(static_cast<guest::v1::Phase>(phase));
    hello.set_has_secret(secret % 2 == 1);
    if (phase == guest::v1::PHASE_FAILED) fill(*hello.mutable_failure(), secret / 2);
  }
  std::string proof(GuestSocket& connection, unsigned kind) {
    if (kind == 2) return last_proof_;
    if (kind == 3) return text_;
    const auto& secret = kind == 5 ? promises_.last_secret() : promises_.secret();
    if (kind == 0 || !secret) return "";
    std::string mac = guestwire::prove(*secret, connection.nonce());
    if (kind == 4) mac.pop_back();
    if (kind != 4 && secret == promises_.secret()) {
      connection.proved = secret;
      promises_.proof_sent();
      last_proof_ = mac;
    }
    return mac;
  }
  void fill(guest::v1::Prepared& prepared, unsigned kind) const {
    if ((kind & 1U) != 0) prepared.set_failure(ascii());
    if ((kind & 2U) == 0) return;
    const std::string text = ascii();
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(number_, 2000); ++i) {
      if (3 * text.size() * i >= kMaxText) break;
      prepared.add_notes(text);
      guest::v1::MountSeen* mount = prepared.add_mounts();
      mount->set_target(text);
      mount->set_failure(text);
      mount->set_inode(number_);
    }
  }
  void fill(guest::v1::ExecsKnown& known, unsigned exec, unsigned kind) const {
    known.set_more((kind & 1U) != 0);
    if (exec < 15) known.add_exec_ids(exec_id(exec));
    if ((kind & 2U) != 0) known.add_exec_ids(exec_id(exec));
    if ((kind & 4U) == 0) return;
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(number_, 20'000); ++i) {
      known.add_exec_ids("many-" + std::to_string(i));
    }
  }
  void fill(guest::v1::EntrypointFailed& failed, unsigned cause) const {
    failed.set_cause(static_cast<guest::v1::EntrypointFailed::Cause>(cause));
    failed.set_code(static_cast<std::int32_t>(number_));
    failed.set_detail(text_);
    failed.set_output_tail(text_);
  }
  void fill(guest::v1::ExecEnded& ended, unsigned exec, unsigned how) const {
    ended.set_exec_id(exec_id(exec));
    ended.set_how(static_cast<guest::v1::ExecEnded::How>(how));
    ended.set_code(static_cast<std::int32_t>(number_));
    ended.set_detail(text_);
    ended.set_output_truncated(number_ % 2 == 1);
    ended.set_user_cpu_microseconds(number_);
    ended.set_system_cpu_microseconds(~number_);
    ended.set_peak_memory_bytes(number_);
  }

  std::string exec_id(unsigned number) const { return number == 13 ? ascii() : exec_name(number); }
  // For fields that protobuf sends only as UTF-8; a step of raw bytes can break that rule.
  std::string ascii() const {
    std::string text = text_;
    for (char& byte : text) byte = static_cast<char>(byte & 0x7F);
    return text;
  }

  Promises& promises_;
  std::vector<GuestSocket> connections_;
  std::size_t selected_ = 0;
  std::size_t bytes_made_ = 0;
  unsigned descriptors_ = 0;
  bool is_holding_ = false;
  std::string held_;
  std::string text_ = "text";
  std::uint64_t number_ = 1;
  std::uint64_t last_ping_ = 0;
  std::uint64_t last_probe_ = 0;
  std::uint64_t last_input_ = 0;
  std::string last_proof_;
};

}  // namespace agbox::guestlink

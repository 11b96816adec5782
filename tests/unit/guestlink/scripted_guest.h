// SPDX-License-Identifier: Apache-2.0
// A guest whose every word a test chooses, over a real socket.
#pragma once

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <filesystem>
#include <optional>
#include <string>

#include "agbox/guest/v1/link.pb.h"
#include "guestwire/frame.h"
#include "guestwire/place.h"
#include "guestwire/proof.h"

namespace agbox::guestlink {

namespace asio = boost::asio;
namespace v1 = guest::v1;
template <class T>
using awaitable = asio::awaitable<T>;

class ScriptedGuest {
 public:
  explicit ScriptedGuest(const asio::any_io_executor& executor) : socket_(executor) {}

  awaitable<bool> connect(std::filesystem::path folder) {
    reader_ = guestwire::FrameReader(guestwire::kMaxFrame);
    socket_ = asio::local::stream_protocol::socket(socket_.get_executor());
    const auto [problem] = co_await socket_.async_connect(
        {(folder / guestwire::kSocketName).string()}, asio::as_tuple(asio::use_awaitable));
    co_return !problem;
  }

  awaitable<void> send_bytes(std::string bytes) {
    co_await asio::async_write(socket_, asio::buffer(bytes), asio::as_tuple(asio::use_awaitable));
  }
  awaitable<void> send(v1::ToDaemon message) { co_await send_bytes(guestwire::frame(message)); }

  // Nothing where the daemon has closed the connection.
  awaitable<std::optional<v1::ToGuest>> receive() {
    while (true) {
      if (const auto bytes = reader_.next()) {
        v1::ToGuest message;
        if (message.ParseFromString(*bytes)) co_return message;
        co_return std::nullopt;
      }
      std::array<char, 8192> chunk;
      const auto [problem, got] = co_await socket_.async_read_some(
          asio::buffer(chunk), asio::as_tuple(asio::use_awaitable));
      if (problem) co_return std::nullopt;
      reader_.feed({chunk.data(), got});
    }
  }

  // Hello, challenge, proof (empty without a secret); returns what the daemon says then.
  awaitable<std::optional<v1::ToGuest>> shake_hands(v1::Phase phase, std::string secret = "") {
    co_await send(hello(phase, !secret.empty()));
    const auto challenge = co_await receive();
    if (!challenge || !challenge->has_challenge()) co_return std::nullopt;
    v1::ToDaemon proof;
    proof.mutable_proof();
    if (!secret.empty()) {
      proof.mutable_proof()->set_mac(guestwire::prove(secret, challenge->challenge().nonce()));
    }
    co_await send(proof);
    co_return co_await receive();
  }

  // The whole way until the daemon knows it.
  awaitable<bool> arrive(std::filesystem::path folder, v1::Phase phase = v1::PHASE_FRESH,
                         std::string secret = "") {
    if (!co_await connect(folder)) co_return false;
    const auto welcome = co_await shake_hands(phase, secret);
    if (!welcome || !welcome->has_welcome()) co_return false;
    v1::ToDaemon prepared;
    prepared.mutable_prepared();
    co_await send(prepared);
    co_return true;
  }

  static v1::ToDaemon hello(v1::Phase phase, bool has_secret) {
    v1::ToDaemon message;
    v1::Hello* hello = message.mutable_hello();
    hello->set_protocol_min(1);
    hello->set_protocol_max(1);
    hello->set_build_id("\x01\xAB");
    hello->set_phase(phase);
    hello->set_has_secret(has_secret);
    return message;
  }

  void close() { socket_.close(); }

 private:
  asio::local::stream_protocol::socket socket_;
  guestwire::FrameReader reader_{guestwire::kMaxFrame};
};

}  // namespace agbox::guestlink

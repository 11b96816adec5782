// SPDX-License-Identifier: Apache-2.0
// Whatever bytes a disk gives back, decoding them is a record or an Error. The first byte says
// which decoder, the rest is cut into columns: each begins with its length.
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string_view>

#include "base/check.h"
#include "store/decode.h"
#include "store/store_file.h"

namespace agbox {
namespace {

class Columns {
 public:
  explicit Columns(std::string_view bytes) : rest_(bytes) {}
  std::string_view bytes() {
    const std::size_t length = static_cast<std::size_t>(integer() & 0xFFFF) % (rest_.size() + 1);
    const std::string_view column = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return column;
  }
  std::int64_t integer() {
    std::int64_t number = 0;
    const std::size_t length = std::min(sizeof(number), rest_.size());
    std::memcpy(&number, rest_.data(), length);
    rest_.remove_prefix(length);
    return number;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

void decode(unsigned char decoder, Columns columns) {
  switch (decoder % 5) {
    case 0: {
      SandboxRow row;
      row.sandbox_id = columns.bytes();
      row.created_at = columns.integer();
      row.state = columns.integer();
      row.operation = columns.integer();
      row.operation_attempts = columns.integer();
      row.deleted_at = columns.integer();
      row.subnet = columns.bytes();
      row.quiet_since = columns.bytes();
      row.created_with = columns.bytes();
      row.spec = columns.rest();
      const auto sandbox = decode_sandbox(row);
      AGBOX_CHECK(!sandbox || sandbox->sandbox_id == row.sandbox_id, "another sandbox");
      if (!sandbox) return;
      AGBOX_CHECK(time_since(*sandbox->quiet_since, SystemClock().now()).count() >= 0, "to come");
      return;
    }
    case 1: {
      const std::string_view name = columns.bytes();
      static_cast<void>(decode_container(name, columns.rest()));
      return;
    }
    case 2: {
      ExecRow row;
      row.exec_id = columns.bytes();
      row.sandbox_id = columns.bytes();
      row.state = columns.integer();
      row.request = columns.bytes();
      row.record = columns.rest();
      const auto exec = decode_exec(row);
      AGBOX_CHECK(!exec || exec->request.exec_id() == row.exec_id, "another exec");
      return;
    }
    case 3: {
      const std::int64_t sequence = columns.integer();
      const std::string_view sandbox_id = columns.bytes();
      const auto event = decode_event(sandbox_id, sequence, columns.rest());
      AGBOX_CHECK(!event || (event->bytes == columns.rest() && sequence > 0), "another event");
      return;
    }
    default: {
      // An unsigned view of the same bytes.
      const auto* data = reinterpret_cast<const unsigned char*>(columns.rest().data());
      static_cast<void>(check_store_header(std::span(data, columns.rest().size()), "ids.db", 1));
      return;
    }
  }
}

}  // namespace
}  // namespace agbox

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  google::protobuf::SetLogHandler(nullptr);  // a line for every text that is not UTF-8
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  // libFuzzer hands out unsigned bytes, protobuf and SQLite speak of char.
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  agbox::decode(data[0], agbox::Columns(bytes.substr(1)));
  return 0;
}

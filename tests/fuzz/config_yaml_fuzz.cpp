// SPDX-License-Identifier: Apache-2.0
// config_yaml with any content: it becomes a message of bounded size, or is refused in one readable
// sentence that begins with a position.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/utf8.h"
#include "model/spec/config_yaml.h"
#include "model/spec/maxima.h"
#include "model/spec/sandbox_spec.h"

namespace {

using namespace agbox;

void check_refused(const Error& error) {
  const std::string_view sentence = error.message();
  AGBOX_CHECK(
      error.reason() == reason::kInvalidArgument || error.reason() == reason::kResourceExhausted,
      "the error is one of the request");
  AGBOX_CHECK(sentence.starts_with("line ") || error.reason() == reason::kResourceExhausted,
              "the sentence begins with a position");
  AGBOX_CHECK(to_utf8(sentence) == sentence, "the sentence is UTF-8");
  AGBOX_CHECK(sentence.size() < 4096, "the sentence is short");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // reinterpret_cast: libFuzzer gives bytes, the file is text.
  const auto spec = parse_config_yaml({reinterpret_cast<const char*>(data), size});
  if (!spec) {
    check_refused(spec.error());
    return 0;
  }
  AGBOX_CHECK(spec->ByteSizeLong() <= 2 * maxima::kConfigYamlWeight, "the message is bounded");
  v1::CreateSpec same;
  AGBOX_CHECK(same.ParseFromString(spec->SerializeAsString()), "the message can be stored");
  (void)parse_create_spec(merge_create_specs(*spec, *spec));
  return 0;
}

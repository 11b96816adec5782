// SPDX-License-Identifier: Apache-2.0
// An image's passwd, group and shadow, whatever they hold: the runtime user comes in, a second time
// changes nothing, and no line of the image is lost.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "guest/account_files.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace agbox::guest;
  if (size < 2) return 0;
  RuntimeUserPlan plan;
  plan.uid = data[0] % 4 == 0 ? 0 : 1000;
  plan.gid = data[0] % 3 == 0 ? 0 : 1000;
  if (data[1] & 1) plan.supplemental_gids = {44, 4242};
  plan.shell = "/bin/sh";
  // libFuzzer speaks bytes, ours are chars. Files and the USER are cut at NUL bytes.
  std::string_view rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  const auto next = [&] {
    const std::size_t end = rest.find('\0');
    const std::string part(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    return part;
  };
  AccountFiles files;
  const std::string user = next();
  files.passwd = next();
  files.group = next();
  if (data[1] & 2) files.shadow = next();

  const AccountFiles once = with_runtime_user(files, plan);
  if (with_runtime_user(once, plan) != once) std::abort();
  if (once.passwd.find("agbox:") == std::string::npos) std::abort();
  const auto agbox = resolve_user("agbox", once);
  if (!agbox || agbox->uid != plan.uid || agbox->gid != plan.gid) std::abort();
  static_cast<void>(resolve_user(user, files));
  static_cast<void>(runtime_identity(once, plan));
  return 0;
}

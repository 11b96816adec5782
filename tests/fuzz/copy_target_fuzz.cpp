// SPDX-License-Identifier: Apache-2.0
// A tar stream out of a sandbox, unpacked on the host: nothing outside of the target may change,
// and nothing may have a setuid bit or be a device.
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <filesystem>
#include <iterator>
#include <span>
#include <string>
#include <tuple>

#include "base/check.h"
#include "base/tar/target_unpacker.h"

namespace {

namespace fs = std::filesystem;

// A target with a directory, a file and links that lead out, in a directory that no stream may
// touch.
class Host {
 public:
  Host() {
    std::string name = (fs::temp_directory_path() / "agbox-fuzz-XXXXXX").string();
    AGBOX_CHECK(::mkdtemp(name.data()) != nullptr, "mkdtemp");
    path_ = name;
    fs::create_directories(path_ / "t/d");
    fs::create_symlink("..", path_ / "t/up");
    fs::create_symlink(path_, path_ / "t/out");
    fs::create_symlink("d", path_ / "t/in");
  }
  Host(const Host&) = delete;
  ~Host() {
    // Directories of the stream may be closed to us.
    for (auto entry =
             fs::recursive_directory_iterator(path_, fs::directory_options::skip_permission_denied);
         entry != fs::recursive_directory_iterator(); ++entry) {
      if (entry->is_directory() && !entry->is_symlink()) {
        fs::permissions(entry->path(), fs::perms::owner_all, fs::perm_options::add);
      }
    }
    fs::remove_all(path_);
  }

  fs::path target() const { return path_ / "t"; }
  void check() const {
    const auto entries = std::distance(fs::directory_iterator(path_), fs::directory_iterator());
    AGBOX_CHECK(entries == 1, "nothing is written outside of the target");
    for (const auto& entry :
         fs::recursive_directory_iterator(path_, fs::directory_options::skip_permission_denied)) {
      struct stat status{};
      if (::lstat(entry.path().c_str(), &status) != 0) continue;
      const mode_t type = status.st_mode & S_IFMT;
      AGBOX_CHECK(type == S_IFREG || type == S_IFDIR || type == S_IFLNK, "no device");
      AGBOX_CHECK((status.st_mode & (S_ISUID | S_ISGID)) == 0, "no setuid bit");
    }
  }

 private:
  fs::path path_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const Host host;
  agbox::UnpackTarget target{.path = host.target()};
  if (data[0] == 'c') target.placement = agbox::TreePlacement::Content;
  if (data[0] == 'n') target.path += "/new";
  if (data[0] == 'r') target.root_name = "d";
  std::size_t at = 1;
  std::ignore =
      agbox::unpack_at(target, {.entries = 100, .bytes = 1 << 20}, [&](std::span<char> buffer) {
        const std::size_t length = std::min(buffer.size(), size - at);
        std::memcpy(buffer.data(), data + at, length);
        at += length;
        return std::expected<std::size_t, int>(length);
      });
  host.check();
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// A copy stream from anywhere, unpacked below a directory: nothing outside of it may change.
#include <fcntl.h>
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
#include "base/unique_fd.h"
#include "guest/tree_unpacker.h"

namespace {

namespace fs = std::filesystem;

// A container's root with a directory, a file and links that lead out, next to what no stream may
// touch.
class World {
 public:
  World() {
    std::string name = (fs::temp_directory_path() / "agbox-fuzz-XXXXXX").string();
    AGBOX_CHECK(::mkdtemp(name.data()) != nullptr, "mkdtemp");
    path_ = name;
    fs::create_directories(path_ / "root/t/d");
    fs::create_symlink("../..", path_ / "root/t/up");
    fs::create_symlink(path_, path_ / "root/t/out");
    root_.reset(::open((path_ / "root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  World(const World&) = delete;
  ~World() {
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

  int root() const { return root_.get(); }
  void check() const {
    const auto entries = std::distance(fs::directory_iterator(path_), fs::directory_iterator());
    AGBOX_CHECK(entries == 1, "nothing is written outside of the root");
    const auto in_root =
        std::distance(fs::directory_iterator(path_ / "root"), fs::directory_iterator());
    AGBOX_CHECK(in_root == 1, "nothing is written outside of the target");
  }

 private:
  fs::path path_;
  agbox::UniqueFd root_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const bool is_single_file = data[0] == 'f';
  const World world;
  std::size_t at = 1;
  std::ignore = agbox::guest::unpack_tree(
      world.root(),
      {.uid = ::geteuid(), .gid = ::getegid(), .target = "/t", .is_single_file = is_single_file},
      [&](std::span<char> buffer) {
        const std::size_t length = std::min(buffer.size(), size - at);
        std::memcpy(buffer.data(), data + at, length);
        at += length;
        return std::expected<std::size_t, int>(length);
      });
  world.check();
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "guest/preparation.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "guest/image_file.h"
#include "guestwire/place.h"

namespace agbox::guest {
namespace {

using guestwire::kHome;
using guestwire::kUserName;
using guestwire::kWorkspace;

// One preparation: the root directory and the report that it fills.
class Preparing {
 public:
  Preparing(int root, const v1::Welcome& welcome) : root_(root), welcome_(welcome) {}

  Preparation run() {
    check_mounts();
    make_user();
    make_home();
    give_workspace();
    allow_sudo();
    fill_user();
    return std::move(done_);
  }

  Preparation run_joined(const std::string& user) {
    const AccountFiles image = read_accounts();
    if (auto resolved = resolve_user(user, image)) {
      done_.runtime_user = *resolved;
    } else {
      refuse(resolved.error());
    }
    done_.image_user = done_.runtime_user;
    done_.runtime_user_name = user_name_of(done_.runtime_user.uid, image.passwd);
    fill_user();
    return std::move(done_);
  }

 private:
  void note(std::string text) { done_.report.add_notes(std::move(text)); }
  // Only the first failure is reported.
  void refuse(const Error& error) {
    if (done_.report.failure().empty()) done_.report.set_failure(error.message());
  }

  void check_mounts() {
    for (const v1::Mount& mount : welcome_.mounts()) {
      v1::MountSeen* seen = done_.report.add_mounts();
      seen->set_target(mount.target());
      const OpenedFile target = open_as_mounted(root_, mount.target(), O_PATH);
      struct stat status{};
      if (!target || ::fstat(target.fd.get(), &status) != 0) {
        seen->set_failure(std::strerror(target ? errno : target.problem));
        continue;
      }
      seen->set_device(status.st_dev);
      seen->set_inode(status.st_ino);
    }
  }

  void make_user() {
    const RuntimeUserPlan plan{.uid = welcome_.uid(),
                               .gid = welcome_.gid(),
                               .supplemental_gids = {welcome_.supplemental_gids().begin(),
                                                     welcome_.supplemental_gids().end()},
                               .shell = login_shell()};
    const AccountFiles image = read_accounts();
    done_.root_home = resolve_user("", image).value_or(Identity{}).home;
    if (auto user = resolve_user(welcome_.image_user(), image)) {
      done_.image_user = *user;
    } else {
      refuse(user.error());
    }
    const AccountFiles written = with_runtime_user(image, plan);
    done_.runtime_user = runtime_identity(written, plan);
    done_.runtime_user_name = kUserName;
    // Group first: a user whose group has no name is worse than a group without users.
    write_account("group", image.group, written.group);
    if (image.shadow) write_account("shadow", *image.shadow, *written.shadow);
    write_account("passwd", image.passwd, written.passwd);
    done_.kept_accounts = {.passwd = kept("/etc/passwd", written.passwd),
                           .group = kept("/etc/group", written.group)};
  }

  std::optional<std::string> kept(std::string_view path, const std::string& text) {
    const OpenedFile file = open_inside(root_, path, O_PATH | O_NOFOLLOW);
    struct stat status{};
    // Not written: a link, or below a mount, or the root is read-only.
    if (!file || ::fstat(file.fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
      return std::nullopt;
    }
    return text;
  }

  AccountFiles read_accounts() {
    AccountFiles files;
    files.passwd = read_account("/etc/passwd").value_or("");
    files.group = read_account("/etc/group").value_or("");
    files.shadow = read_account("/etc/shadow");
    return files;
  }

  std::optional<std::string> read_account(std::string_view path) {
    auto text = read_image_file(root_, path);
    if (text) return *text;
    note(text.error().message());
    return std::nullopt;
  }

  void write_account(std::string_view name, const std::string& before, const std::string& after) {
    if (before == after) return;
    const auto written = replace_image_file(root_, "/etc", name, after, 0644);
    if (!written) note("user " + std::string(kUserName) + ": " + written.error().message());
  }

  std::string login_shell() const {
    for (const std::string_view shell :
         {"/bin/bash", "/bin/zsh", "/usr/bin/bash", "/usr/bin/zsh"}) {
      if (open_across_mounts(root_, shell, O_PATH)) return std::string(shell);
    }
    return "/bin/sh";
  }

  void make_home() {
    make_directory("/home");
    make_directory(kHome);
    give_to_user(kHome);
    // Otherwise tools could not write configuration that came with the image, nor next to what is
    // mounted for them: the engine makes the parents of a mount as root.
    for (const std::string_view name : {".claude", ".codex", ".agents", ".cache", ".npm", ".config",
                                        ".local", ".local/share", ".ssh"}) {
      give_to_user(std::string(kHome) + "/" + std::string(name));
    }
  }

  void give_workspace() {
    make_directory(kWorkspace);
    give_to_user(kWorkspace);
  }

  void make_directory(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    const OpenedFile parent = open_inside(root_, path.substr(0, slash), O_PATH | O_DIRECTORY);
    const std::string name = path.substr(slash + 1);
    const int problem = !parent                                               ? parent.problem
                        : ::mkdirat(parent.fd.get(), name.c_str(), 0755) == 0 ? 0
                                                                              : errno;
    if (problem == 0 && ::fchmodat(parent.fd.get(), name.c_str(), 0755, 0) == 0) return;
    if (problem == EEXIST || problem == EXDEV) return;  // exists, or inside a mount
    note("create " + path + ": " + std::strerror(problem == 0 ? errno : problem));
  }

  bool is_anonymous_volume(std::string_view path) const {
    return std::any_of(
        welcome_.mounts().begin(), welcome_.mounts().end(),
        [&](const v1::Mount& mount) { return mount.anonymous_volume() && mount.target() == path; });
  }

  // Makes the runtime user owner of a directory, not of its content. Mounts are left alone, except
  // anonymous volumes of this container.
  void give_to_user(const std::string& path) {
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK;
    const OpenedFile directory = is_anonymous_volume(path) ? open_across_mounts(root_, path, flags)
                                                           : open_inside(root_, path, flags);
    if (!directory) {
      if (directory.problem == ENOENT || directory.problem == EXDEV) return;
      note("chown " + path + " to " + kUserName + ": " + std::strerror(directory.problem));
      return;
    }
    struct stat status{};
    if (::fstat(directory.fd.get(), &status) == 0 && status.st_uid == welcome_.uid() &&
        status.st_gid == welcome_.gid()) {
      return;
    }
    if (::fchown(directory.fd.get(), welcome_.uid(), welcome_.gid()) != 0) {
      note("chown " + path + " to " + kUserName + ": " + std::strerror(errno));
    }
  }

  void allow_sudo() {
    if (!open_inside(root_, "/etc/sudoers.d", O_PATH | O_DIRECTORY)) return;
    const std::string rule = std::string(kUserName) + " ALL=(ALL:ALL) NOPASSWD: ALL\n";
    const auto existing = read_image_file(root_, "/etc/sudoers.d/runtime-user");
    if (existing && *existing == rule) return;
    const auto written = replace_image_file(root_, "/etc/sudoers.d", "runtime-user", rule, 0440);
    if (!written) note("sudo for " + std::string(kUserName) + ": " + written.error().message());
  }

  void fill_user() {
    v1::RuntimeUser* user = done_.report.mutable_user();
    user->set_uid(done_.runtime_user.uid);
    user->set_gid(done_.runtime_user.gid);
    for (const gid_t gid : done_.runtime_user.gids) user->add_gids(gid);
    user->set_home(done_.runtime_user.home);
  }

  int root_;
  const v1::Welcome& welcome_;
  Preparation done_;
};

}  // namespace

Preparation prepare(int root, const v1::Welcome& welcome) {
  return Preparing(root, welcome).run();
}

Preparation prepare_joined(int root, const std::string& user) {
  return Preparing(root, v1::Welcome::default_instance()).run_joined(user);
}

}  // namespace agbox::guest

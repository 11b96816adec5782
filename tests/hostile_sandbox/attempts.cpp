// SPDX-License-Identifier: Apache-2.0
#include "hostile_sandbox/attempts.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <mqueue.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>

namespace agbox::hostile {
namespace {

int bind_to(int family, const void* address, socklen_t size) {
  const int fd = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  return said(::bind(fd, static_cast<const sockaddr*>(address), size));
}

}  // namespace

// Whoever is made by it ends at once; so does its maker, soon after.
int clone_with(long flags) {
  const long child = ::syscall(SYS_clone, flags | SIGCHLD, 0L, 0L, 0L, 0L);
  if (child == 0) ::_exit(0);
  return said(child);
}

int open_file(const char* path, int flags) {
  return said(::open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
}

int read_link(const char* path) {
  std::array<char, 256> target;
  return said(::readlink(path, target.data(), target.size()));
}

int new_file() {
  std::string path = "/tmp/hostile-XXXXXX";
  const int fd = ::mkostemp(path.data(), O_CLOEXEC);
  ::unlink(path.c_str());
  return fd;
}

int make_node(mode_t kind, dev_t device) {
  const std::string path = "/tmp/node-" + std::to_string(::getpid());
  const int answer = said(::mknod(path.c_str(), kind | 0600, device));
  ::unlink(path.c_str());
  return answer;
}

int bind_port_80() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(80);
  return bind_to(AF_INET, &address, sizeof address);
}

int bind_ipv6_loopback() {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  return bind_to(AF_INET6, &address, sizeof address);
}

int connect_to_oneself() {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  // sockaddr is the base class of the C interface.
  auto* place = reinterpret_cast<sockaddr*>(&address);
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::bind(listener, place, size) != 0 || ::listen(listener, 1) != 0 ||
      ::getsockname(listener, place, &size) != 0 || ::connect(client, place, size) != 0) {
    return errno;
  }
  return said(::accept(listener, nullptr, nullptr));
}

int set_option(int level, int option) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const int value = 1;
  return said(::setsockopt(fd, level, option, &value, sizeof value));
}

int set_flags_of_loopback() {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  if (::ioctl(fd, SIOCGIFFLAGS, &request) != 0) return errno;
  return said(::ioctl(fd, SIOCSIFFLAGS, &request));
}

int set_clock() {
  timex clock{};
  if (::adjtimex(&clock) < 0) return errno;
  clock.modes = ADJ_MAXERROR;
  return said(::adjtimex(&clock));
}

int set_attribute(const char* name, const void* value, std::size_t size) {
  return said(::fsetxattr(new_file(), name, value, size, 0));
}

int set_file_capability() {
  vfs_cap_data data{};
  data.magic_etc = VFS_CAP_REVISION_2;
  data.data[0].permitted = 1U << CAP_CHOWN;
  return set_attribute("security.capability", &data, XATTR_CAPS_SZ_2);
}

int start_thread() {
  pthread_t thread;
  auto nothing = [](void*) -> void* { return nullptr; };
  const int problem = ::pthread_create(&thread, nullptr, nothing, nullptr);
  return problem != 0 ? problem : ::pthread_join(thread, nullptr);
}

int trace_a_child() {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  const int answer = said(::ptrace(PTRACE_SEIZE, child, nullptr, nullptr));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return answer;
}

int read_memory_of(pid_t process) {
  char byte = 'x';
  char copy = 0;
  const iovec local{.iov_base = &copy, .iov_len = 1};
  const iovec remote{.iov_base = &byte, .iov_len = 1};
  return said(::process_vm_readv(process, &local, 1, &remote, 1, 0));
}

int take_a_descriptor_of_the_first_process() {
  const long process = ::syscall(SYS_pidfd_open, 1L, 0L);
  if (process < 0) return errno;
  return call(SYS_pidfd_getfd, process, 1, 0);
}

int filter_oneself() {
  sock_filter allow{.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = SECCOMP_RET_ALLOW};
  const sock_fprog program{.len = 1, .filter = &allow};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  return call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

int make_queue() {
  const std::string name = "/hostile-" + std::to_string(::getpid());
  const int answer = said(::mq_open(name.c_str(), O_CREAT | O_RDWR, 0600, nullptr));
  ::mq_unlink(name.c_str());
  return answer;
}

int make_shared_memory() {
  const int id = ::shmget(IPC_PRIVATE, 4096, 0600);
  if (id < 0) return errno;
  return said(::shmctl(id, IPC_RMID, nullptr));
}

int make_semaphore() {
  const int id = ::semget(IPC_PRIVATE, 1, 0600);
  if (id < 0) return errno;
  return said(::semctl(id, 0, IPC_RMID));
}

int make_signal_descriptor() {
  sigset_t signals;
  ::sigemptyset(&signals);
  return said(::signalfd(-1, &signals, SFD_CLOEXEC));
}

int raise_core_limit() {
  const rlimit limit{.rlim_cur = 1, .rlim_max = 1};
  return said(::setrlimit(RLIMIT_CORE, &limit));
}

int copy_files() {
  const int from = new_file();
  const int to = new_file();
  if (::write(from, "text", 4) != 4 || ::lseek(from, 0, SEEK_SET) != 0) return errno;
  if (::sendfile(to, from, nullptr, 2) != 2) return errno;
  return said(::copy_file_range(from, nullptr, to, nullptr, 2, 0));
}

int make_socket_pair(int family) {
  std::array<int, 2> ends;
  return said(::socketpair(family, SOCK_STREAM, 0, ends.data()));
}

int trace_the_first_process() {
  return said(::ptrace(PTRACE_SEIZE, 1, nullptr, nullptr));
}

int read_clock() {
  timex clock{};
  return said(::adjtimex(&clock));
}

int map_executable_memory() {
  constexpr int all = PROT_READ | PROT_WRITE | PROT_EXEC;
  void* const memory = ::mmap(nullptr, 4096, all, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? errno : 0;
}

int make_asynchronous_context() {
  unsigned long context = 0;
  return call(SYS_io_setup, 1, &context);
}

#ifdef __x86_64__
int i386_getpid() {
  long answer = 20;
  asm volatile("int $0x80" : "+a"(answer) : : "memory", "r8", "r9", "r10", "r11");
  return answer < 0 ? static_cast<int>(-answer) : 0;
}
#endif

}  // namespace agbox::hostile

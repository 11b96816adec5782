// SPDX-License-Identifier: Apache-2.0
#include "hostile_sandbox/calls.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/timerfd.h>

#include <array>
#include <csignal>

#include "hostile_sandbox/attempts.h"

namespace agbox::hostile {
namespace {

constexpr long kNoDescriptor = -1;
constexpr long kBadFlags = -1;
constexpr long kBadAddress = 1;  // an invalid pointer
constexpr const char* kNoFile = "/no/such/file";
constexpr uid_t kSomebody = 12345;
// Of a register. The kernel drops it where it takes an int.
constexpr long kUpperHalf = 1L << 32;
constexpr long kNoSuchCall = 600;

constexpr auto kCalls = std::to_array<Call>({
    // Work that filters cannot see, and the kernel's own programs.
    {"io_uring_setup", [] { return call(SYS_io_uring_setup, 1, kBadAddress); }},
    {"io_uring_enter", [] { return call(SYS_io_uring_enter, kNoDescriptor, 0, 0, 0, 0, 0); }},
    {"io_uring_register", [] { return call(SYS_io_uring_register, kNoDescriptor, 0, 0, 0); }},
    {"bpf", [] { return call(SYS_bpf, kBadFlags, 0, 0); }},
    {"perf_event_open", [] { return call(SYS_perf_event_open, kBadAddress, 0, -1, -1, 0); }},
    {"userfaultfd", [] { return call(SYS_userfaultfd, kBadFlags); }},
    {"fanotify_init", [] { return call(SYS_fanotify_init, kBadFlags, 0); }},
    {"lookup_dcookie", [] { return call(SYS_lookup_dcookie, 0, kBadAddress, 0); }},

    // Keys, which have no namespaces.
    {"keyctl", [] { return call(SYS_keyctl, 0, -3, 0); }},
    {"add_key", [] { return call(SYS_add_key, kBadAddress, kBadAddress, 0, 0, 0); }},
    {"request_key", [] { return call(SYS_request_key, kBadAddress, kBadAddress, 0, 0); }},

    // Namespaces and mounts.
    {"unshare", [] { return call(SYS_unshare, 0); }},
    {"unshare CLONE_NEWUSER", [] { return call(SYS_unshare, CLONE_NEWUSER); }},
    {"unshare CLONE_NEWNS", [] { return call(SYS_unshare, CLONE_NEWNS); }},
    {"setns", [] { return call(SYS_setns, kNoDescriptor, 0); }},
    {"clone CLONE_NEWUSER", [] { return clone_with(CLONE_NEWUSER); }},
    {"clone CLONE_NEWNS", [] { return clone_with(CLONE_NEWNS); }},
    {"clone CLONE_NEWPID", [] { return clone_with(CLONE_NEWPID); }},
    {"clone CLONE_NEWNET", [] { return clone_with(CLONE_NEWNET); }},
    {"clone CLONE_NEWIPC", [] { return clone_with(CLONE_NEWIPC); }},
    {"clone CLONE_NEWUTS", [] { return clone_with(CLONE_NEWUTS); }},
    {"clone CLONE_NEWCGROUP", [] { return clone_with(CLONE_NEWCGROUP); }},
    {"clone3", [] { return call(SYS_clone3, kBadAddress, 0); }},
    {"mount", [] { return call(SYS_mount, 0, kBadAddress, 0, 0, 0); }},
    {"umount2", [] { return call(SYS_umount2, kNoFile, 0); }},
    {"pivot_root", [] { return call(SYS_pivot_root, kBadAddress, kBadAddress); }},
    {"fsopen", [] { return call(SYS_fsopen, kBadAddress, 0); }},
    {"fsconfig", [] { return call(SYS_fsconfig, kNoDescriptor, 0, 0, 0, 0); }},
    {"fsmount", [] { return call(SYS_fsmount, kNoDescriptor, 0, 0); }},
    {"fspick", [] { return call(SYS_fspick, kNoDescriptor, kBadAddress, 0); }},
    {"move_mount", [] { return call(SYS_move_mount, -1, kBadAddress, -1, kBadAddress, 0); }},
    {"open_tree", [] { return call(SYS_open_tree, kNoDescriptor, kBadAddress, 0); }},
    {"mount_setattr", [] { return call(SYS_mount_setattr, -1, kBadAddress, kBadFlags, 0, 0); }},
    {"open_by_handle_at", [] { return call(SYS_open_by_handle_at, -1, kBadAddress, 0); }},
    {"quotactl", [] { return call(SYS_quotactl, kBadFlags, 0, 0, 0); }},
    {"quotactl_fd", [] { return call(SYS_quotactl_fd, kNoDescriptor, kBadFlags, 0, 0); }},

    // The machine itself.
    {"init_module", [] { return call(SYS_init_module, kBadAddress, 0, kBadAddress); }},
    {"finit_module", [] { return call(SYS_finit_module, kNoDescriptor, kBadAddress, 0); }},
    {"delete_module", [] { return call(SYS_delete_module, kBadAddress, 0); }},
    {"kexec_load", [] { return call(SYS_kexec_load, 0, 0, 0, kBadFlags); }},
    {"kexec_file_load", [] { return call(SYS_kexec_file_load, -1, -1, 0, 0, kBadFlags); }},
    {"reboot", [] { return call(SYS_reboot, 0, 0, 0, 0); }},
    {"swapon", [] { return call(SYS_swapon, kBadAddress, kBadFlags); }},
    {"swapoff", [] { return call(SYS_swapoff, kBadAddress); }},
    {"acct", [] { return call(SYS_acct, kNoFile); }},
    {"syslog", [] { return call(SYS_syslog, 10, 0, 0); }},
    {"sethostname", [] { return call(SYS_sethostname, kBadAddress, -1); }},
    {"setdomainname", [] { return call(SYS_setdomainname, kBadAddress, -1); }},
    {"settimeofday", [] { return call(SYS_settimeofday, kBadAddress, 0); }},
    {"clock_settime", [] { return call(SYS_clock_settime, CLOCK_REALTIME, kBadAddress); }},
    {"vhangup", [] { return call(SYS_vhangup); }},
    {"move_pages", [] { return call(SYS_move_pages, 0, 0, 0, 0, 0, 0); }},
    {"migrate_pages", [] { return call(SYS_migrate_pages, 0, 0, 0, 0); }},
    {"personality", [] { return call(SYS_personality, 0xffffffffL); }},
    {"personality ADDR_NO_RANDOMIZE", [] { return call(SYS_personality, ADDR_NO_RANDOMIZE); }},
    {"personality READ_IMPLIES_EXEC", [] { return call(SYS_personality, READ_IMPLIES_EXEC); }},
    {"personality, upper half", [] { return call(SYS_personality, kUpperHalf); }},
    {"a call that does not exist", [] { return call(kNoSuchCall); }},
#ifdef __x86_64__
    {"iopl", [] { return call(SYS_iopl, 4); }},
    {"ioperm", [] { return call(SYS_ioperm, -1, 1, 1); }},
    {"uselib", [] { return call(SYS_uselib, kNoFile); }},
    {"sysfs", [] { return call(SYS_sysfs, 3, 0, 0); }},
    {"i386 getpid", i386_getpid},
    {"x32 getpid", [] { return call(0x40000000L | SYS_getpid); }},
#endif

    // Sockets.
    {"socket AF_VSOCK", [] { return call(SYS_socket, AF_VSOCK, SOCK_STREAM, 0); }},
    {"socket AF_VSOCK, upper half",
     [] { return call(SYS_socket, kUpperHalf | AF_VSOCK, SOCK_STREAM, 0); }},
    {"socket AF_ALG", [] { return call(SYS_socket, AF_ALG, SOCK_SEQPACKET, 0); }},
    {"socket AF_BLUETOOTH", [] { return call(SYS_socket, AF_BLUETOOTH, SOCK_RAW, 1); }},
    {"socket AF_CAN", [] { return call(SYS_socket, AF_CAN, SOCK_RAW, 1); }},
    {"socket AF_KEY", [] { return call(SYS_socket, AF_KEY, SOCK_RAW, 2); }},
    {"socket AF_RDS", [] { return call(SYS_socket, AF_RDS, SOCK_SEQPACKET, 0); }},
    {"socket AF_SMC", [] { return call(SYS_socket, AF_SMC, SOCK_STREAM, 0); }},
    {"socket AF_TIPC", [] { return call(SYS_socket, AF_TIPC, SOCK_STREAM, 0); }},
    {"socket AF_XDP", [] { return call(SYS_socket, AF_XDP, SOCK_RAW, 0); }},
    {"socket AF_PACKET", [] { return call(SYS_socket, AF_PACKET, SOCK_RAW, 0); }},
    {"socket AF_INET SOCK_RAW", [] { return call(SYS_socket, AF_INET, SOCK_RAW, IPPROTO_TCP); }},
    {"socket NETLINK_AUDIT", [] { return call(SYS_socket, AF_NETLINK, SOCK_RAW, NETLINK_AUDIT); }},
    {"socket NETLINK_AUDIT, upper half",
     [] { return call(SYS_socket, AF_NETLINK, SOCK_RAW, kUpperHalf | NETLINK_AUDIT); }},
    {"socket NETLINK_ROUTE", [] { return call(SYS_socket, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE); }},
    {"socket NETLINK_GENERIC",
     [] { return call(SYS_socket, AF_NETLINK, SOCK_RAW, NETLINK_GENERIC); }},
    {"socket AF_INET ICMP", [] { return call(SYS_socket, AF_INET, SOCK_DGRAM, IPPROTO_ICMP); }},
    {"socket AF_INET6", [] { return call(SYS_socket, AF_INET6, SOCK_STREAM, 0); }},
    {"socketpair AF_UNIX", [] { return make_socket_pair(AF_UNIX); }},
    {"socketpair AF_TIPC", [] { return make_socket_pair(AF_TIPC); }},
    {"bind to ::1", bind_ipv6_loopback},
    {"bind to port 80", bind_port_80},
    {"TCP to itself", connect_to_oneself},
    {"setsockopt SO_MARK", [] { return set_option(SOL_SOCKET, SO_MARK); }},
    {"setsockopt IP_TRANSPARENT", [] { return set_option(SOL_IP, IP_TRANSPARENT); }},
    {"ioctl SIOCSIFFLAGS", set_flags_of_loopback},

    // What requires a capability.
    {"fchown to another user", [] { return said(::fchown(new_file(), kSomebody, kSomebody)); }},
    {"setuid", [] { return said(::setuid(kSomebody)); }},
    {"setgroups", [] { return said(::setgroups(0, nullptr)); }},
    {"kill of the first process", [] { return said(::kill(1, 0)); }},
    {"chroot", [] { return said(::chroot("/")); }},
    {"open /etc/shadow", [] { return open_file("/etc/shadow", O_RDONLY); }},
    {"mknod of a FIFO", [] { return make_node(S_IFIFO, 0); }},
    {"mknod of a character device", [] { return make_node(S_IFCHR, ::makedev(1, 3)); }},
    {"mknod of a block device", [] { return make_node(S_IFBLK, ::makedev(254, 0)); }},
    {"setpriority", [] { return said(::setpriority(PRIO_PROCESS, 0, -5)); }},
    {"setrlimit RLIMIT_CORE", raise_core_limit},
    {"adjtimex, to read", read_clock},
    {"adjtimex, to set", set_clock},
    {"setxattr user", [] { return set_attribute("user.x", "x", 1); }},
    {"setxattr trusted", [] { return set_attribute("trusted.x", "x", 1); }},
    {"setxattr security.capability", set_file_capability},
    {"fcntl F_SETLEASE", [] { return said(::fcntl(new_file(), F_SETLEASE, F_WRLCK)); }},

    // The guest, which is PID 1, and the kernel's files.
    {"ptrace of the first process", trace_the_first_process},
    {"process_vm_readv of the first process", [] { return read_memory_of(1); }},
    {"pidfd_getfd of the first process", take_a_descriptor_of_the_first_process},
    {"kcmp with the first process", [] { return call(SYS_kcmp, 1, ::getpid(), 1, 0, 0); }},
    {"open /proc/1/mem", [] { return open_file("/proc/1/mem", O_RDONLY); }},
    {"open /proc/1/environ", [] { return open_file("/proc/1/environ", O_RDONLY); }},
    {"open /proc/1/root", [] { return open_file("/proc/1/root", O_PATH); }},
    {"open /proc/1/fd/1", [] { return open_file("/proc/1/fd/1", O_WRONLY); }},
    {"readlink /proc/1/exe", [] { return read_link("/proc/1/exe"); }},
    {"readlink /proc/1/ns/net", [] { return read_link("/proc/1/ns/net"); }},
    {"write core_pattern", [] { return open_file("/proc/sys/kernel/core_pattern", O_WRONLY); }},
    {"write ip_forward", [] { return open_file("/proc/sys/net/ipv4/ip_forward", O_WRONLY); }},
    {"write disable_ipv6",
     [] { return open_file("/proc/sys/net/ipv6/conf/all/disable_ipv6", O_WRONLY); }},
    {"write /sys", [] { return open_file("/sys/kernel/mm/ksm/run", O_WRONLY); }},
    {"open /dev/kmsg", [] { return open_file("/dev/kmsg", O_RDONLY); }},

    // What every program relies on.
    {"fork", [] { return clone_with(0); }},
    {"thread", start_thread},
    {"ptrace of a child", trace_a_child},
    {"process_vm_readv of itself", [] { return read_memory_of(::getpid()); }},
    {"pidfd_open", [] { return call(SYS_pidfd_open, ::getpid(), 0); }},
    {"seccomp", filter_oneself},
    {"executable memory", map_executable_memory},
    {"memfd_create", [] { return said(::memfd_create("x", MFD_CLOEXEC)); }},
    {"epoll", [] { return said(::epoll_create1(EPOLL_CLOEXEC)); }},
    {"eventfd", [] { return said(::eventfd(0, EFD_CLOEXEC)); }},
    {"inotify", [] { return said(::inotify_init1(IN_CLOEXEC)); }},
    {"timerfd", [] { return said(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)); }},
    {"signalfd", make_signal_descriptor},
    {"flock", [] { return said(::flock(new_file(), LOCK_EX | LOCK_NB)); }},
    {"copies within the kernel", copy_files},
    {"message queue", make_queue},
    {"shared memory", make_shared_memory},
    {"semaphore", make_semaphore},
    {"io_setup", make_asynchronous_context},
});

}  // namespace

std::span<const Call> all_calls() {
  return kCalls;
}

}  // namespace agbox::hostile

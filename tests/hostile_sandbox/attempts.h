// SPDX-License-Identifier: Apache-2.0
// The calls that take more than one line to make. Each answers 0, or the errno that the kernel or a
// filter answered with; what it makes is gone with the process.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace agbox::hostile {

inline int said(long result) {
  return result < 0 ? errno : 0;
}

inline long to_word(long value) {
  return value;
}

inline const void* to_word(const void* value) {
  return value;
}

// As the kernel takes it: every argument fills a register.
template <class... Arguments>
int call(long number, Arguments... arguments) {
  return said(::syscall(number, to_word(arguments)...));
}

int clone_with(long flags);
int start_thread();

int open_file(const char* path, int flags);
int read_link(const char* path);
int new_file();  // a descriptor
int make_node(mode_t kind, dev_t device);
int set_attribute(const char* name, const void* value, std::size_t size);
int set_file_capability();
int copy_files();

int bind_port_80();
int bind_ipv6_loopback();
int connect_to_oneself();
int make_socket_pair(int family);
int set_option(int level, int option);
int set_flags_of_loopback();  // unchanged

int trace_a_child();
int trace_the_first_process();
int read_memory_of(pid_t process);
int take_a_descriptor_of_the_first_process();
int filter_oneself();

int read_clock();
int set_clock();  // unchanged
int raise_core_limit();
int map_executable_memory();
int make_queue();
int make_shared_memory();
int make_semaphore();
int make_signal_descriptor();
int make_asynchronous_context();

#ifdef __x86_64__
int i386_getpid();  // a 32-bit system call from a 64-bit program
#endif

}  // namespace agbox::hostile

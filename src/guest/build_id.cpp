// SPDX-License-Identifier: Apache-2.0
#include "guest/build_id.h"

#include <elf.h>
#include <link.h>

#include <cstring>

namespace agbox::guest {
namespace {

// Program headers come from the kernel and the linker: no validation needed.
int find(dl_phdr_info* info, std::size_t, void* found) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type != PT_NOTE) continue;
    // The loader reports the address as a number, not as a pointer.
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    const char* at = reinterpret_cast<const char*>(info->dlpi_addr + header.p_vaddr);
    const char* end = at + header.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const auto padded = [](std::size_t size) { return (size + 3) & ~std::size_t{3}; };
      const char* content = at + sizeof note + padded(note.n_namesz);
      if (note.n_type == NT_GNU_BUILD_ID) {
        static_cast<std::string*>(found)->assign(content, note.n_descsz);
        return 1;
      }
      at = content + padded(note.n_descsz);
    }
  }
  return 1;  // the first object is the program itself
}

}  // namespace

std::string build_id() {
  std::string id;
  ::dl_iterate_phdr(find, &id);
  return id;
}

}  // namespace agbox::guest

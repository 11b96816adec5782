// SPDX-License-Identifier: Apache-2.0
// The bytes of a tar stream in the pax format, for any tar: sparse files are as GNU tar 1.0 has
// them. Pure; the caller writes a header, the stored bytes and their padding, and at last the end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/tar/tar_entry.h"

namespace agbox {

// Everything before the stored bytes of the entry.
std::string tar_header(const TarEntry& entry);
// Zeros, after the stored bytes.
std::string_view tar_padding(std::uint64_t stored_bytes);
// After the last entry. A stream that ends without it is incomplete.
std::string_view tar_end();

}  // namespace agbox

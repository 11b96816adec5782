// SPDX-License-Identifier: Apache-2.0
// What a caller wants to copy into or out of a sandbox, checked. The message of an error names the
// field.
#pragma once

#include "agbox/v1/files.pb.h"
#include "base/result.h"
#include "model/guest/file_order.h"

namespace agbox {

Result<FileOrder> parse_copy_in(const v1::CopyInTarget& target);
Result<FileOrder> parse_copy_out(const v1::CopyOutRequest& request);

}  // namespace agbox

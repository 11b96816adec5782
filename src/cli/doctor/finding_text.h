// SPDX-License-Identifier: Apache-2.0
// Formats the findings of a diagnosis: one line each, followed by its fix, and a count at the end.
#pragma once

#include <agbox/v1/service.pb.h>

#include <string>

namespace agbox::cli {

std::string findings_text(const v1::DiagnoseResponse& response);

// Whether a finding is broken; warnings and unknown results do not count.
bool has_broken(const v1::DiagnoseResponse& response);

}  // namespace agbox::cli

// SPDX-License-Identifier: Apache-2.0
// The findings of a diagnosis as text: one line each, below it what mends it, and a count at the
// end.
#pragma once

#include <agbox/v1/service.pb.h>

#include <string>

namespace agbox::cli {

std::string findings_text(const v1::DiagnoseResponse& response);

// Whether something is broken; warnings and what could not be looked at are not.
bool has_broken(const v1::DiagnoseResponse& response);

}  // namespace agbox::cli

// SPDX-License-Identifier: Apache-2.0
// Converts rule steps to libnftnl expressions and back.
#pragma once

#include "isolation/nft/nft_objects.h"
#include "isolation/nft/nft_table.h"

namespace agbox::nft {

ExpressionObject encode_step(const Step& step);

// Anything that is not one of our steps is Foreign.
Step decode_step(const nftnl_expr* expression);

}  // namespace agbox::nft

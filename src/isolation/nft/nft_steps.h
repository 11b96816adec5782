// SPDX-License-Identifier: Apache-2.0
// A step of a rule as libnftnl's expression, and back.
#pragma once

#include "isolation/nft/nft_objects.h"
#include "isolation/nft/nft_table.h"

namespace agbox::nft {

ExpressionObject encode_step(const Step& step);

// Whatever no step of ours can be is Foreign.
Step decode_step(const nftnl_expr* expression);

}  // namespace agbox::nft

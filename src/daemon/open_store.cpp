// SPDX-License-Identifier: Apache-2.0
#include "daemon/open_store.h"

#include "base/uuid.h"

namespace agbox {

Result<std::unique_ptr<Store>> open_store(const FixedPaths&, ControlLoop&, const Clock&,
                                          const Logger&) {
  return std::make_unique<Store>(random_uuid());
}

}  // namespace agbox

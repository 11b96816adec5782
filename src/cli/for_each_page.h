// SPDX-License-Identifier: Apache-2.0
// Reads all pages of a list.
#pragma once

#include <agbox/raw_client.h>

namespace agbox::cli {

// `fetch` requests one page, `consume` receives each page.
template <class Request, class Fetch, class Consume>
sdk::Result<void> for_each_page(Request request, const Fetch& fetch, const Consume& consume) {
  while (true) {
    const auto page = fetch(request);
    if (!page) return std::unexpected(page.error());
    consume(*page);
    if (page->next_page_token().empty()) return {};
    if (page->next_page_token() == request.page_token()) {
      return std::unexpected(
          sdk::Error{.message = "agboxd returned page \"" + request.page_token() +
                                "\" twice: check that agbox and agboxd have the same version"});
    }
    request.set_page_token(page->next_page_token());
  }
}

}  // namespace agbox::cli

// SPDX-License-Identifier: Apache-2.0
// Reads a list that the daemon gives in pages to its end.
#pragma once

#include <agbox/raw_client.h>

namespace agbox::cli {

// `ask` makes the call for one page, `take` gets each page.
template <class Request, class Ask, class Take>
sdk::Result<void> every_page(Request request, const Ask& ask, const Take& take) {
  while (true) {
    const auto page = ask(request);
    if (!page) return std::unexpected(page.error());
    take(*page);
    if (page->next_page_token().empty()) return {};
    if (page->next_page_token() == request.page_token()) {
      return std::unexpected(
          sdk::Error{.message = "agboxd repeats the page \"" + request.page_token() +
                                "\" for ever; restart it, and agbox and agboxd of one version"});
    }
    request.set_page_token(page->next_page_token());
  }
}

}  // namespace agbox::cli

// SPDX-License-Identifier: Apache-2.0
#include "model/spec/image_reference.h"

#include <algorithm>

namespace agbox {
namespace {

bool is_lower_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}
bool is_alphanumeric(char c) {
  return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z');
}
bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

// Lower-case words with one '.', one or two '_', or any number of '-' between them.
bool is_path_component(std::string_view text) {
  if (text.empty() || !is_lower_or_digit(text.front()) || !is_lower_or_digit(text.back())) {
    return false;
  }
  for (std::size_t i = 0; i < text.size();) {
    if (is_lower_or_digit(text[i])) {
      ++i;
      continue;
    }
    const std::size_t end = std::min(text.find_first_not_of("._-", i), text.size());
    const std::string_view separator = text.substr(i, end - i);
    const bool is_allowed = separator == "." || separator == "_" || separator == "__" ||
                            separator.find_first_not_of('-') == std::string_view::npos;
    if (separator.empty() || !is_allowed) return false;
    i = end;
  }
  return true;
}

bool is_host_label(std::string_view text) {
  return !text.empty() && is_alphanumeric(text.front()) && is_alphanumeric(text.back()) &&
         std::ranges::all_of(text, [](char c) { return is_alphanumeric(c) || c == '-'; });
}

// host, host:port or [address]:port.
bool is_registry(std::string_view text) {
  std::string_view host = text;
  if (const std::size_t colon = text.rfind(':');
      colon != std::string_view::npos && !text.ends_with(']')) {
    const std::string_view port = text.substr(colon + 1);
    if (port.empty() || port.size() > 5 ||
        !std::ranges::all_of(port, [](char c) { return c >= '0' && c <= '9'; })) {
      return false;
    }
    host = text.substr(0, colon);
  }
  if (host.starts_with('[')) {
    return host.ends_with(']') && host.size() > 2 &&
           host.substr(1, host.size() - 2).find_first_not_of("0123456789abcdefABCDEF:.") ==
               std::string_view::npos;
  }
  while (true) {
    const std::size_t dot = host.find('.');
    if (!is_host_label(host.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    host.remove_prefix(dot + 1);
  }
}

// Whether the first component is a registry rather than a namespace of docker.io.
bool looks_like_registry(std::string_view first) {
  return first == "localhost" || first.find_first_of(".:[") != std::string_view::npos ||
         std::ranges::any_of(first, [](char c) { return c >= 'A' && c <= 'Z'; });
}

bool is_tag(std::string_view text) {
  return !text.empty() && text.size() <= 128 && (is_alphanumeric(text[0]) || text[0] == '_') &&
         std::ranges::all_of(
             text, [](char c) { return is_alphanumeric(c) || c == '_' || c == '.' || c == '-'; });
}

bool is_digest(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view algorithm = text.substr(0, colon);
  const std::string_view hash = text.substr(colon + 1);
  return is_path_component(algorithm) && hash.size() >= 32 && hash.size() <= 256 &&
         std::ranges::all_of(hash, is_hex);
}

bool is_repository(std::string_view path) {
  while (true) {
    const std::size_t slash = path.find('/');
    if (!is_path_component(path.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

}  // namespace

std::string ImageReference::canonical() const {
  return name() + (tag.empty() ? "" : ":" + tag) + (digest.empty() ? "" : "@" + digest);
}

std::string ImageReference::credentials_key() const {
  return registry == "docker.io" ? "https://index.docker.io/v1/" : registry;
}

Result<ImageReference> parse_image_reference(std::string_view text) {
  const auto refuse = [text](std::string_view why) {
    return fail(reason::kInvalidArgument, "image '" + std::string(text.substr(0, 300)) +
                                              "': " + std::string(why) +
                                              "; expected for example busybox:1.36 or "
                                              "registry.example/team/image:tag");
  };
  std::string_view rest = text;
  ImageReference reference;
  if (const std::size_t at = rest.find('@'); at != std::string_view::npos) {
    reference.digest = rest.substr(at + 1);
    if (!is_digest(reference.digest)) return refuse("the digest after @ is not one");
    rest = rest.substr(0, at);
  }
  if (const std::size_t slash = rest.find('/');
      slash != std::string_view::npos && looks_like_registry(rest.substr(0, slash))) {
    reference.registry = rest.substr(0, slash);
    if (!is_registry(reference.registry)) return refuse("the registry is not a host name");
    rest.remove_prefix(slash + 1);
  }
  if (const std::size_t colon = rest.rfind(':');
      colon != std::string_view::npos && colon > rest.rfind('/') + 1) {
    reference.tag = rest.substr(colon + 1);
    if (!is_tag(reference.tag)) return refuse("the tag after : is not one");
    rest = rest.substr(0, colon);
  }
  reference.repository = rest;
  if (!is_repository(rest)) return refuse("the name is not lower-case words with / between them");

  if (reference.registry.empty() || reference.registry == "index.docker.io") {
    reference.registry = "docker.io";
  }
  if (reference.registry == "docker.io" && !reference.repository.contains('/')) {
    reference.repository = "library/" + reference.repository;
  }
  if (reference.tag.empty() && reference.digest.empty()) reference.tag = "latest";
  if (reference.name().size() > 255) return refuse("the name has more than 255 characters");
  return reference;
}

bool is_image_id(std::string_view text) {
  return text.size() == 71 && text.starts_with("sha256:") &&
         std::ranges::all_of(text.substr(7), is_hex);
}

}  // namespace agbox

// SPDX-License-Identifier: Apache-2.0
// Elements that arrive one after another, to be read once. An error is the last element.
//
//   for (const auto& event : box.events()) {
//     if (!event) return complain(event.error());
//     std::cout << event->sequence << "\n";
//   }
#pragma once

#include <agbox/client_error.h>

#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

namespace agbox::sdk {

// An input iterator over what the next() of `Owner` returns.
template <class Owner, class T>
class SequenceIterator {
 public:
  using value_type = Result<T>;
  using difference_type = std::ptrdiff_t;

  explicit SequenceIterator(Owner& owner) : owner_(&owner) { advance(); }

  const value_type& operator*() const { return *current_; }
  const value_type* operator->() const { return &*current_; }
  SequenceIterator& operator++() {
    if (*current_) {
      advance();
    } else {
      current_.reset();  // an error is the last element
    }
    return *this;
  }
  void operator++(int) { ++*this; }
  bool operator==(std::default_sentinel_t) const { return !current_; }

 private:
  void advance() {
    Result<std::optional<T>> next = owner_->next();
    current_.reset();
    if (!next) {
      current_.emplace(std::unexpected(std::move(next.error())));
    } else if (*next) {
      current_.emplace(std::move(**next));
    }
  }

  Owner* owner_;
  std::optional<value_type> current_;
};

template <class T>
class Sequence {
 public:
  class Source {
   public:
    virtual ~Source() = default;
    virtual Result<std::optional<T>> next() = 0;
  };
  using Iterator = SequenceIterator<Sequence, T>;

  explicit Sequence(std::unique_ptr<Source> source) : source_(std::move(source)) {}

  // Blocks until the next element; nullopt at the end.
  Result<std::optional<T>> next() { return source_->next(); }

  Iterator begin() { return Iterator(*this); }
  std::default_sentinel_t end() const { return {}; }

 private:
  std::unique_ptr<Source> source_;
};

}  // namespace agbox::sdk

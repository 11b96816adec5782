// SPDX-License-Identifier: Apache-2.0
// The .gitignore at the root of a copied tree, only to know which links to the outside may be left
// out. It is not Git's own matching: a pattern also matches everything below what it matches, ? is
// an ordinary character, and the last line that matches decides. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace agbox {

class Gitignore {
 public:
  Gitignore() = default;
  explicit Gitignore(std::string_view text);

  bool is_empty() const { return lines_.empty(); }
  // `path` is below the root; of a directory with a slash at its end.
  bool matches(std::string_view path) const;

 private:
  struct Piece {
    enum class Kind {
      Literal,         // `text`
      Class,           // one character of `text`, which is what is between [ and ]
      WithinName,      // *: any number of characters but slashes
      Between,         // /**/: a slash, or two with anything in between
      AnythingBefore,  // **/: nothing, or anything that ends with a slash
      AnythingBelow,   // /**: nothing, or a slash and anything
    };
    Kind kind = Kind::Literal;
    std::string text{};
  };
  struct Line {
    bool is_negated = false;
    bool is_anchored = false;
    bool is_directory = false;  // ends with a slash
    std::vector<Piece> pieces;
  };
  static Line parse(std::string_view text);
  static std::vector<bool> step(const Piece& piece, std::string_view path,
                                const std::vector<bool>& from);
  static bool matches(const Line& line, std::string_view path);

  std::vector<Line> lines_;
};

}  // namespace agbox

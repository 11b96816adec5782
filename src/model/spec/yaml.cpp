// SPDX-License-Identifier: Apache-2.0
#include "model/spec/yaml.h"

#include <yaml.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "base/utf8.h"
#include "model/spec/maxima.h"
#include "model/spec/request_checks.h"

namespace agbox {
namespace {

constexpr std::size_t kMaxDepth = 32;
// Of an empty node: what vectors, strings and messages made from it take, roughly.
constexpr std::size_t kNodeWeight = 16;
constexpr std::string_view kMergeKey = "<<";

// As people count, from 1.
struct Position {
  std::size_t line = 1;
  std::size_t column = 1;
};

std::unexpected<Error> error_at(Position at, std::string_view message) {
  return invalid_argument("line " + std::to_string(at.line) + ", column " +
                          std::to_string(at.column) + ": " + std::string(message));
}

Position position_of(const yaml_mark_t& mark) {
  return {.line = mark.line + 1, .column = mark.column + 1};
}

// reinterpret_cast: libyaml has strings of unsigned characters. Null is the empty one.
std::string text_of(const yaml_char_t* text) {
  return text == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(text));
}

// Tags of YAML's own types say what the key requires anyway; others would change the meaning.
bool is_known_tag(std::string_view tag) {
  constexpr std::string_view kPrefix = "tag:yaml.org,2002:";
  constexpr std::array<std::string_view, 8> kTypes = {"str",  "int", "float", "bool",
                                                      "null", "map", "seq",   "merge"};
  return tag == "!" || (tag.starts_with(kPrefix) &&
                        std::ranges::find(kTypes, tag.substr(kPrefix.size())) != kTypes.end());
}

bool is_string_tag(std::string_view tag) {
  return tag == "!" || tag == "tag:yaml.org,2002:str";
}

class Builder {
 public:
  Result<> take(const yaml_event_t& event) {
    const Position at = position_of(event.start_mark);
    const auto& data = event.data;
    switch (event.type) {
      case YAML_SCALAR_EVENT:
        return add_scalar(at, data.scalar);
      case YAML_ALIAS_EVENT:
        return add_alias(at, text_of(data.alias.anchor));
      case YAML_SEQUENCE_START_EVENT:
        return open(at, YamlNode::Kind::List, data.sequence_start.anchor, data.sequence_start.tag);
      case YAML_MAPPING_START_EVENT:
        return open(at, YamlNode::Kind::Map, data.mapping_start.anchor, data.mapping_start.tag);
      case YAML_SEQUENCE_END_EVENT:
      case YAML_MAPPING_END_EVENT:
        return close();
      case YAML_STREAM_END_EVENT:
        return error_at({}, "the document is empty");
      default:
        return {};
    }
  }

  // Complete once the document has ended.
  YamlNodePtr root() { return std::move(root_); }

 private:
  struct Open {
    std::shared_ptr<YamlNode> node;
    std::string anchor;
    YamlNodePtr key;  // of the entry whose value comes next
  };

  Result<> add_scalar(Position at, const decltype(yaml_event_t{}.data.scalar)& scalar) {
    AGBOX_TRY_VOID(check_tag(at, scalar.tag));
    auto node = new_node(at, YamlNode::Kind::Scalar);
    node->text.assign(reinterpret_cast<const char*>(scalar.value), scalar.length);
    node->is_plain = scalar.style == YAML_PLAIN_SCALAR_STYLE && !is_string_tag(text_of(scalar.tag));
    node->weight += node->text.size();
    AGBOX_TRY_VOID(count(*node, node->weight));
    return add(std::move(node), text_of(scalar.anchor));
  }

  Result<> add_alias(Position at, const std::string& name) {
    const auto found = anchors_.find(name);
    if (found == anchors_.end()) {
      return error_at(at, "the alias *" + name + " has no anchor before it");
    }
    AGBOX_TRY_VOID(count(*found->second, found->second->weight));
    return add(found->second, {});
  }

  Result<> open(Position at, YamlNode::Kind kind, const yaml_char_t* anchor,
                const yaml_char_t* tag) {
    AGBOX_TRY_VOID(check_tag(at, tag));
    auto node = new_node(at, kind);
    if (open_.size() == kMaxDepth) {
      return yaml_error(*node,
                        "more than " + std::to_string(kMaxDepth) + " levels are not possible");
    }
    AGBOX_TRY_VOID(count(*node, node->weight));
    open_.push_back({.node = std::move(node), .anchor = text_of(anchor), .key = nullptr});
    return {};
  }

  Result<> close() {
    Open closed = std::move(open_.back());
    open_.pop_back();
    if (closed.node->kind == YamlNode::Kind::Map) {
      AGBOX_TRY_VOID(check_keys(*closed.node));
      AGBOX_TRY_VOID(merge(*closed.node));
    }
    return add(std::move(closed.node), std::move(closed.anchor));
  }

  Result<> add(YamlNodePtr node, std::string anchor) {
    if (!anchor.empty()) anchors_[std::move(anchor)] = node;
    if (open_.empty()) {
      root_ = std::move(node);
      return {};
    }
    Open& parent = open_.back();
    parent.node->weight += node->weight;
    if (parent.node->kind == YamlNode::Kind::List) {
      parent.node->items.push_back(std::move(node));
    } else if (parent.key == nullptr) {
      if (node->kind != YamlNode::Kind::Scalar) return yaml_error(*node, "a key must be a string");
      parent.key = std::move(node);
    } else {
      parent.node->entries.emplace_back(std::exchange(parent.key, nullptr), std::move(node));
    }
    return {};
  }

  static Result<> check_keys(const YamlNode& map) {
    std::map<std::string_view, std::size_t> lines;
    for (const auto& [key, value] : map.entries) {
      const auto [first, is_new] = lines.emplace(key->text, key->line);
      if (is_new) continue;
      return yaml_error(*key, "the key \"" + key->text + "\" is already set at line " +
                                  std::to_string(first->second));
    }
    return {};
  }

  // Adds the entries of the maps below << that the map does not set itself; of two that set the
  // same key, the first one counts.
  Result<> merge(YamlNode& map) {
    const auto is_merge = [](const auto& entry) {
      return entry.first->is_plain && entry.first->text == kMergeKey;
    };
    const auto found = std::ranges::find_if(map.entries, is_merge);
    if (found == map.entries.end()) return {};
    const YamlNodePtr merged = found->second;
    map.entries.erase(found);
    std::set<std::string_view> keys;
    for (const auto& [key, value] : map.entries) keys.insert(key->text);
    const bool is_list = merged->kind == YamlNode::Kind::List;
    const std::vector<YamlNodePtr> sources = is_list ? merged->items : std::vector{merged};
    for (const YamlNodePtr& source : sources) {
      if (source->kind != YamlNode::Kind::Map) {
        return yaml_error(*source, "<< takes a map or a list of maps");
      }
      AGBOX_TRY_VOID(count(map, source->weight));
      map.weight += source->weight;
      for (const auto& entry : source->entries) {
        if (keys.insert(entry.first->text).second) map.entries.push_back(entry);
      }
    }
    return {};
  }

  static std::shared_ptr<YamlNode> new_node(Position at, YamlNode::Kind kind) {
    auto node = std::make_shared<YamlNode>();
    node->kind = kind;
    node->line = at.line;
    node->column = at.column;
    node->weight = kNodeWeight;
    return node;
  }

  static Result<> check_tag(Position at, const yaml_char_t* tag) {
    if (tag == nullptr || is_known_tag(text_of(tag))) return {};
    return error_at(at, "the tag is not supported; leave it out");
  }

  Result<> count(const YamlNode& node, std::size_t weight) {
    total_weight_ += weight;
    if (total_weight_ <= maxima::kConfigYamlWeight) return {};
    return yaml_error(node, "the document is too large with its aliases expanded");
  }

  std::vector<Open> open_;
  std::map<std::string, YamlNodePtr> anchors_;
  YamlNodePtr root_;
  std::size_t total_weight_ = 0;
};

// Deletes what libyaml allocated, at the end of a scope.
struct Parser {
  Parser() { is_usable = yaml_parser_initialize(&parser) == 1; }
  ~Parser() {
    if (is_usable) yaml_parser_delete(&parser);
  }
  Parser(const Parser&) = delete;

  yaml_parser_t parser{};
  bool is_usable = false;
};
struct Event {
  Event() = default;
  ~Event() { yaml_event_delete(&event); }
  Event(const Event&) = delete;

  yaml_event_t event{};
};

Error syntax_error(const yaml_parser_t& parser) {
  if (parser.problem == nullptr) return error_at({}, "the document is not valid YAML").error();
  const std::string context = parser.context == nullptr ? "" : std::string(parser.context) + ": ";
  return error_at(position_of(parser.problem_mark), context + parser.problem).error();
}

// libyaml gives no line for bytes that it cannot decode.
Result<> check_characters(std::string_view text) {
  Position at;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text.substr(i));
    if (length == 0) return error_at(at, "the text is not UTF-8");
    const auto first = static_cast<unsigned char>(text[i]);
    if ((first < 0x20 && first != '\t' && first != '\n' && first != '\r') || first == 0x7F) {
      return error_at(at, "the text has a control character");
    }
    const bool is_line_end = text[i] == '\n';
    at = is_line_end ? Position{at.line + 1, 1} : Position{at.line, at.column + 1};
    i += length;
  }
  return {};
}

}  // namespace

bool YamlNode::is_null() const {
  return kind == Kind::Scalar && is_plain &&
         (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL");
}

std::unexpected<Error> yaml_error(const YamlNode& node, std::string_view message) {
  return error_at({node.line, node.column}, message);
}

Result<YamlNodePtr> parse_yaml(std::string_view text) {
  AGBOX_TRY_VOID(check_characters(text));
  Parser yaml;
  if (!yaml.is_usable) return fail(reason::kInternal, "the YAML parser could not be made");
  yaml_parser_set_encoding(&yaml.parser, YAML_UTF8_ENCODING);
  yaml_parser_set_input_string(&yaml.parser, reinterpret_cast<const unsigned char*>(text.data()),
                               text.size());
  Builder builder;
  // Until the event behind the document's end: only there libyaml reports what does not belong to
  // it, which would be lost.
  for (bool is_behind = false;;) {
    Event parsed;
    if (yaml_parser_parse(&yaml.parser, &parsed.event) != 1) {
      return std::unexpected(syntax_error(yaml.parser));
    }
    if (is_behind) return builder.root();
    is_behind = parsed.event.type == YAML_DOCUMENT_END_EVENT;
    AGBOX_TRY_VOID(builder.take(parsed.event));
  }
}

}  // namespace agbox

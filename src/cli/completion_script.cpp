// SPDX-License-Identifier: Apache-2.0
// All three scripts walk the words before the cursor: the name of a subcommand selects it, a flag
// that takes a value skips the next word, and "--" ends the walk.
#include "cli/completion_script.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/help.h"

namespace agbox::cli {

namespace {

constexpr std::string_view kBash = R"(# bash completion for @NAME@
_@NAME@() {
  local at=@NAME@ words='' index
  COMPREPLY=()
  for ((index = 1; index < COMP_CWORD; index++)); do
    case "$at ${COMP_WORDS[index]}" in
@PATHS@
@VALUES@
      *' --') compopt -o default; return ;;
    esac
  done
  if ((index > COMP_CWORD)); then
    case "$at ${COMP_WORDS[COMP_CWORD - 1]}" in
@CHOICES@
      *) compopt -o default; return ;;
    esac
  else
    case "$at" in
@CANDIDATES@
    esac
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}")
}
complete -F _@NAME@ @NAME@
)";

constexpr std::string_view kZsh = R"(#compdef @NAME@
_@NAME@() {
  local at=@NAME@ index
  local -a commands flags
  for ((index = 2; index < CURRENT; index++)); do
    case "$at ${words[index]}" in
@PATHS@
@VALUES@
      *' --') _files; return ;;
    esac
  done
  if ((index > CURRENT)); then
    case "$at ${words[CURRENT - 1]}" in
@CHOICES@
      *) _files ;;
    esac
    return
  fi
  case "$at" in
@CANDIDATES@
  esac
  _describe command commands
  _describe -o flag flags
}
# Found in $fpath this file is the function's body; sourced it only defines the function.
if [[ ${funcstack[1]} == _@NAME@ ]]; then
  _@NAME@ "$@"
else
  compdef _@NAME@ @NAME@
fi
)";

constexpr std::string_view kFish = R"(# fish completion for @NAME@
function __@NAME@_at
    set -l at @NAME@
    set -l skip no
    for word in (commandline -opc)[2..-1]
        if test $skip = yes
            set skip no
            continue
        end
        switch "$at $word"
@PATHS@
@VALUES@
            case '* --'
                return
        end
    end
    echo $at
end
complete -c @NAME@ -f
@CANDIDATES@
)";

using Parts = std::vector<std::pair<std::string_view, std::string>>;

// Replaces every placeholder by its value; drops lines that consist of an empty one.
std::string filled(std::string_view script, const Parts& parts) {
  std::string out(script);
  for (auto [placeholder, part] : parts) {
    if (part.ends_with('\n')) part.pop_back();
    for (std::size_t at = out.find(placeholder); at != std::string::npos;
         at = out.find(placeholder, at + part.size())) {
      const bool leaves_empty_line = part.empty() && out[at + placeholder.size()] == '\n';
      out.replace(at, placeholder.size() + (leaves_empty_line ? 1 : 0), part);
    }
  }
  return out;
}

void for_each_command(const CLI::App& command, const std::function<void(const CLI::App&)>& visit) {
  visit(command);
  for (const CLI::App* child : visible_subcommands(command)) for_each_command(*child, visit);
}

std::vector<std::string> spellings(const CLI::Option& flag) {
  std::vector<std::string> out;
  for (const std::string& name : flag.get_snames()) out.push_back("-" + name);
  for (const std::string& name : flag.get_lnames()) out.push_back("--" + name);
  return out;
}

// Files are offered for a word that has begun, and flags otherwise.
constexpr const char* kBashPath =
    "\n        if [[ ${COMP_WORDS[COMP_CWORD]} == [^-]* ]]; then compopt -o default; return; fi";

// The command that prints the IDs which an argument of it may have; empty if there is none.
std::string id_command(const CLI::App& command) {
  for (const CLI::Option* argument : arguments_of(command)) {
    const std::string name = argument->get_name(true);
    if (name == "sandbox_id") return "ps -q 2>/dev/null";
    if (name == "exec_id") return "exec list -q 2>/dev/null";
    if (name == "id") return "exec list -aq 2>/dev/null";
    if (name == "session") return "diff --list -q 2>/dev/null";
    if (name == "agent") return "agent --list -q 2>/dev/null";
  }
  return "";
}

// Whether an argument of it is a path of this machine.
bool takes_path(const CLI::App& command) {
  return std::ranges::any_of(arguments_of(command), [](const CLI::Option* argument) {
    return argument->get_type_name() == "PATH";
  });
}

// In single quotes; a quote inside becomes `quote`.
std::string in_quotes(std::string_view text, std::string_view quote = "'\\''") {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += quote;
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string joined(const std::vector<std::string>& items, std::string_view separator) {
  std::string out;
  for (const std::string& item : items) {
    if (&item != &items.front()) out += separator;
    out += item;
  }
  return out;
}

// The paths of all subcommands: 'agbox exec', 'agbox exec run' and so on.
std::vector<std::string> deeper_paths(const CLI::App& root) {
  std::vector<std::string> out;
  for_each_command(root, [&](const CLI::App& command) {
    if (&command != &root) out.push_back(in_quotes(command_path(command)));
  });
  return out;
}

// The flags that take a value: 'agbox exec run --cwd' and so on.
std::vector<std::string> value_flags(const CLI::App& root) {
  std::vector<std::string> out;
  for_each_command(root, [&](const CLI::App& command) {
    for (const CLI::Option* flag : flags_of(command)) {
      if (!takes_value(*flag)) continue;
      for (const std::string& spelling : spellings(*flag)) {
        out.push_back(in_quotes(command_path(command) + " " + spelling));
      }
    }
  });
  return out;
}

// Of the flags that accept only some values: a branch of a `case` in bash and zsh for each, with
// what `action` makes of the values.
std::string choice_branches(const CLI::App& root,
                            const std::function<std::string(const std::string&)>& action) {
  std::string out;
  for_each_command(root, [&](const CLI::App& command) {
    for (const CLI::Option* flag : flags_of(command)) {
      const std::vector<std::string> choices = choices_of(*flag);
      if (choices.empty()) continue;
      for (const std::string& spelling : spellings(*flag)) {
        out += "      " + in_quotes(command_path(command) + " " + spelling) + ") " +
               action(joined(choices, " ")) + " ;;\n";
      }
    }
  });
  return out;
}

// A branch of a `case` in bash and zsh; empty if there is no pattern.
std::string branch(const std::vector<std::string>& patterns, std::string_view action) {
  if (patterns.empty()) return "";
  return "      " + joined(patterns, "|") + ") " + std::string(action) + " ;;";
}

std::string fish_branch(const std::vector<std::string>& patterns, std::string_view action) {
  if (patterns.empty()) return "";
  return "            case " + joined(patterns, " ") + "\n                " + std::string(action);
}

// Flags are asked for by their first character, and then the daemon is not asked.
std::string bash_ids(const CLI::App& command) {
  const std::string ids = id_command(command);
  if (ids.empty()) return "";
  return "\n        [[ ${COMP_WORDS[COMP_CWORD]} == -* ]] || words+=\" $(\"${COMP_WORDS[0]}\" " +
         ids + ")\"";
}

std::string zsh_ids(const CLI::App& command) {
  const std::string ids = id_command(command);
  if (ids.empty()) return "";
  return "\n      [[ ${words[CURRENT]} == -* ]] || compadd -- ${(f)\"$(${words[1]} " + ids + ")\"}";
}

}  // namespace

std::string bash_completion(const CLI::App& root) {
  std::string candidates;
  for_each_command(root, [&](const CLI::App& command) {
    std::vector<std::string> words;
    for (const CLI::App* child : visible_subcommands(command)) words.push_back(child->get_name());
    for (const CLI::Option* flag : flags_of(command)) {
      for (const std::string& spelling : spellings(*flag)) words.push_back(spelling);
    }
    candidates += "      " + in_quotes(command_path(command)) +
                  ") words=" + in_quotes(joined(words, " ")) + bash_ids(command) +
                  (takes_path(command) ? kBashPath : "") + " ;;\n";
  });
  return filled(kBash, {{"@NAME@", root.get_name()},
                        {"@PATHS@", branch(deeper_paths(root), "at+=\" ${COMP_WORDS[index]}\"")},
                        {"@VALUES@", branch(value_flags(root), "((++index))")},
                        {"@CHOICES@", choice_branches(root,
                                                      [](const std::string& choices) {
                                                        return "words=" + in_quotes(choices);
                                                      })},
                        {"@CANDIDATES@", candidates}});
}

std::string zsh_completion(const CLI::App& root) {
  std::string candidates;
  for_each_command(root, [&](const CLI::App& command) {
    std::string commands;
    for (const CLI::App* child : visible_subcommands(command)) {
      commands += " " + in_quotes(child->get_name() + ":" + child->get_description());
    }
    std::string flags;
    for (const CLI::Option* flag : flags_of(command)) {
      for (const std::string& spelling : spellings(*flag)) {
        flags += " " + in_quotes(spelling + ":" + flag->get_description());
      }
    }
    candidates += "    " + in_quotes(command_path(command)) + ")\n      commands=(" + commands +
                  " )\n      flags=(" + flags + " )" + (takes_path(command) ? "; _files" : "") +
                  zsh_ids(command) + " ;;\n";
  });
  return filled(
      kZsh,
      {{"@NAME@", root.get_name()},
       {"@PATHS@", branch(deeper_paths(root), "at+=\" ${words[index]}\"")},
       {"@VALUES@", branch(value_flags(root), "((++index))")},
       {"@CHOICES@",
        choice_branches(root, [](const std::string& choices) { return "compadd " + choices; })},
       {"@CANDIDATES@", candidates}});
}

std::string fish_completion(const CLI::App& root) {
  constexpr std::string_view kQuote = "\\'";
  std::string rules;
  for_each_command(root, [&](const CLI::App& command) {
    const std::string rule = "complete -c " + root.get_name() + " -n 'test \"$(__" +
                             root.get_name() + "_at)\" = \"" + command_path(command) + "\"'";
    for (const CLI::App* child : visible_subcommands(command)) {
      rules += rule + " -a " + child->get_name() + " -d " +
               in_quotes(child->get_description(), kQuote) + "\n";
    }
    if (takes_path(command)) rules += rule + " -F\n";
    if (const std::string ids = id_command(command); !ids.empty()) {
      rules += rule + " -a " + in_quotes("(" + root.get_name() + " " + ids + ")", kQuote) + "\n";
    }
    for (const CLI::Option* flag : flags_of(command)) {
      rules += rule;
      for (const std::string& short_name : flag->get_snames()) rules += " -s " + short_name;
      for (const std::string& long_name : flag->get_lnames()) rules += " -l " + long_name;
      if (const auto choices = choices_of(*flag); !choices.empty()) {
        rules += " -x -a " + in_quotes(joined(choices, " "), kQuote);
      } else if (takes_value(*flag)) {
        rules += " -r -F";
      }
      rules += " -d " + in_quotes(flag->get_description(), kQuote) + "\n";
    }
  });
  return filled(kFish, {{"@NAME@", root.get_name()},
                        {"@PATHS@", fish_branch(deeper_paths(root), "set at \"$at $word\"")},
                        {"@VALUES@", fish_branch(value_flags(root), "set skip yes")},
                        {"@CANDIDATES@", rules}});
}

}  // namespace agbox::cli

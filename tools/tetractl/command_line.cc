// SPDX-License-Identifier: Apache-2.0
// Reads a command line by the table of verbs (verbs.cc):
//
//   1. Words before the verb are options of all verbs; the first other word is the verb, or `help`.
//   2. Behind it options of the verb come first, then those of all; "--" ends options.
//   3. Other words are arguments, in the order of the verb's list; what is missing or too much is
//      an error with the verb's usage.
//   4. Environment variables stand in for options that were not given.
//
// A word of nodetool that has no counterpart here says why. Pure, but for the environment.
#include "tools/tetractl/command_line.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/closest_name.h"

namespace tetrad::tools {
namespace {

constexpr std::string_view kTokensInstead =
    "orders carry the node's token (--token-file), not a password of JMX";

// Options with a reason in the last place are taken and ignored with a note: nodetool's scripts use
// them.
/// Of all verbs.
const std::vector<Option>& common_options() {
  static const std::vector<Option> table = {
      {"-h --host", "HOST", "Address of the node (default 127.0.0.1)"},
      {"-p --port", "PORT", "Its admin port (default 9180)"},
      {"--token-file", "FILE",
       "The node's admin_token, for orders; of a node of this machine it is found "
       "(TETRAD_TOKEN_FILE)"},
      {"--ca-file", "FILE",
       "PEM file of who signs nodes' certificates; the admin port then speaks HTTPS "
       "(TETRAD_CA_FILE)"},
      {"--timeout", "SECONDS",
       "For a connection and an answer (default 10); an order such as compact may take longer, as "
       "long as the node answers"},
      {"--json", "", "Print JSON"},
      {"-F --format", "FORMAT", "Of nodetool: json and yaml are --json, since all JSON is YAML"},
      {"--help", "", "Print the help, of the verb if there is one, and end"},
      {"--version", "", "Print the version of tetractl and end"},
      {"-u --username", "NAME", "", kTokensInstead},
      {"-pw --password", "TEXT", "", kTokensInstead},
      {"-pwf --password-file", "FILE", "", kTokensInstead},
      {"-pp --print-port", "", "", "all nodes of a cluster may have the same ports"},
  };
  return table;
}

// Without empty parts.
std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find(at), text.size());
    if (end != 0) out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

// A negative number is no option.
bool is_option(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && (word[1] < '0' || word[1] > '9');
}

// Null: there is none of that name.
const Option* find_option(const std::vector<Option>& options, const std::string& name) {
  for (const Option& option : options) {
    const auto names = split(option.names, ' ');
    if (std::ranges::find(names, name) != names.end()) return &option;
  }
  return nullptr;
}

// By its name or an alias.
const Verb* find_verb(const std::string& word) {
  for (const Verb& verb : verbs()) {
    if (verb.name == word || std::ranges::find(verb.aliases, word) != verb.aliases.end())
      return &verb;
  }
  return nullptr;
}

/// "; did you mean a, b?", or nothing.
std::string near_ones(const std::string& word, const std::vector<std::string>& names) {
  // The closest first; parts of names count from four letters on, beginnings where none is close.
  constexpr size_t kTold = 3, kPartOfName = 4;
  std::vector<std::string> near;
  if (std::string closest = base::closest_name(word, names); !closest.empty())
    near.push_back(std::move(closest));
  const bool is_close = !near.empty();
  for (const std::string& name : names) {
    const bool part = word.size() >= kPartOfName && name.find(word) != std::string::npos;
    const bool begins = !is_close && word.size() >= kPartOfName &&
                        std::string_view(name).starts_with(word.substr(0, kPartOfName));
    if ((part || begins) && near.size() < kTold && std::ranges::find(near, name) == near.end())
      near.push_back(name);
  }
  if (near.empty()) return "";
  return fmt::format("; did you mean {}?", fmt::join(near, ", "));
}

std::vector<std::string> names_of_verbs() {
  std::vector<std::string> names;
  for (const Verb& verb : verbs()) {
    names.emplace_back(verb.name);
    names.insert(names.end(), verb.aliases.begin(), verb.aliases.end());
  }
  return names;
}

// Those of the verb first, if it is known yet.
std::vector<std::string> names_of_options(const Verb* verb) {
  std::vector<std::string> names;
  const auto take = [&](const std::vector<Option>& options) {
    for (const Option& option : options)
      for (std::string& name : split(option.names, ' ')) names.push_back(std::move(name));
  };
  if (verb != nullptr) take(verb->options);
  take(common_options());
  return names;
}

// "tetractl repair [keyspace] [tables...]".
std::string usage_of(const Verb& verb) {
  std::string out = fmt::format("tetractl {}", verb.name);
  for (const Argument& argument : verb.arguments) {
    const bool once = argument.times == Argument::Times::kOnce;
    out += fmt::format(" {}{}{}{}", once ? "" : "[", argument.name,
                       argument.times == Argument::Times::kAny ? "..." : "", once ? "" : "]");
  }
  return out;
}

/// "name: a, b", the words that bash offers for it; "" where there are none.
std::string choices_of(const Argument& argument) {
  if (argument.choices.empty() || argument.choices == Argument::kDirectories) return "";
  return fmt::format("{}: {}", argument.name, fmt::join(split(argument.choices, ' '), ", "));
}

/// Walks over the words of a command line.
/// A message (Said) ends the reading; otherwise call_ is complete at the end.
class Reader {
 public:
  explicit Reader(const std::vector<std::string>& line) : line_(line) {}

  /// What is wrong with the line.
  std::optional<Said> read();
  Invocation take() { return std::move(call_); }

 private:
  static Said wrong(const std::string& what, const std::string& then = "") {
    return {fmt::format("tetractl: {} ({})", what,
                        then.empty() ? "tetractl --help lists the commands" : then),
            2};
  }
  std::optional<Said> take_option(const std::string& word);
  std::optional<Said> take_word(const std::string& word);
  std::optional<Said> take_verb(const std::string& word);
  std::optional<Said> place_arguments();
  std::optional<Said> set_target();
  bool wants_json() const;

  const std::vector<std::string>& line_;
  size_t at_ = 0;
  bool only_words_ = false;  // behind "--"
  bool asks_help_ = false;
  std::vector<std::string> arguments_;
  Invocation call_;
};

std::optional<Said> Reader::read() {
  while (at_ < line_.size()) {
    const std::string& word = line_[at_++];
    if (!only_words_ && word == "--") {
      only_words_ = true;
      continue;
    }
    auto said = !only_words_ && is_option(word) ? take_option(word) : take_word(word);
    if (said) return said;
  }
  // --version and --help go before every other complaint.
  if (call_.has("version")) return Said{std::string("tetractl ") + TETRAD_VERSION, 0};
  if (asks_help_ && !arguments_.empty() && arguments_.front() != "help" && call_.verb == nullptr) {
    if (auto said = take_verb(arguments_.front())) return said;
  }
  if (asks_help_ || call_.has("help"))
    return Said{call_.verb == nullptr ? help_text() : help_text(*call_.verb), 0};
  if (call_.verb == nullptr) return wrong("a command is missing");
  if (auto said = place_arguments()) return said;
  return set_target();
}

std::optional<Said> Reader::take_option(const std::string& word) {
  // --name=value; short options take their value as the next word.
  const size_t equals = word.starts_with("--") ? word.find('=') : std::string::npos;
  const std::string name = word.substr(0, equals);
  const Option* option = nullptr;
  if (call_.verb != nullptr) option = find_option(call_.verb->options, name);
  if (option == nullptr) option = find_option(common_options(), name);
  if (option == nullptr) {
    return wrong(fmt::format("there is no option {}{}{}", name,
                             call_.verb == nullptr ? "" : fmt::format(" of {}", call_.verb->name),
                             near_ones(name, names_of_options(call_.verb))),
                 call_.verb == nullptr
                     ? ""
                     : fmt::format("tetractl help {} lists its options", call_.verb->name));
  }
  std::string value;
  if (option->value.empty()) {
    if (equals != std::string::npos) return wrong(name + " takes no value");
  } else if (equals != std::string::npos) {
    value = word.substr(equals + 1);
  } else {
    if (at_ == line_.size()) {
      // Behind a verb, as nodetool's users ask for help.
      if (word == "-h" && call_.verb != nullptr) return Said{help_text(*call_.verb), 0};
      return wrong(fmt::format("{} needs a value: {}", name, option->value));
    }
    value = line_[at_++];
  }
  // The note goes to standard error, so that output stays what a script expects.
  if (!option->idle.empty())
    call_.notes.push_back(fmt::format("{} changes nothing: {}", name, option->idle));
  call_.words[std::string(option->key())].push_back(std::move(value));
  return std::nullopt;
}

// Behind `help` the next word is a verb.
std::optional<Said> Reader::take_word(const std::string& word) {
  if (call_.verb != nullptr || asks_help_) {
    arguments_.push_back(word);
    return std::nullopt;
  }
  if (word == "help") {
    asks_help_ = true;
    return std::nullopt;
  }
  return take_verb(word);
}

// Also behind a verb that is none, where options are not read.
bool Reader::wants_json() const {
  return std::ranges::any_of(line_, [](const std::string& word) {
    return word == "--json" || word == "-F" || word.starts_with("--format");
  });
}

std::optional<Said> Reader::take_verb(const std::string& word) {
  call_.verb = find_verb(word);
  if (call_.verb != nullptr) return std::nullopt;
  // Words of nodetool that have no verb: what to do instead, or why nothing needs to be done.
  for (const OtherWord& other : other_words()) {
    if (other.name != word) continue;
    const std::string sentence = fmt::format("{}: {}", word, other.why);
    // A program that reads JSON gets JSON; a refusal goes to standard error, as all errors do.
    if (other.is_fulfilled && wants_json())
      return Said{nlohmann::json({{"ok", true}, {"note", sentence}}).dump(2), 0};
    return Said{"tetractl: " + sentence, other.is_fulfilled ? 0 : 1};
  }
  return wrong(fmt::format("there is no command '{}'{}", word, near_ones(word, names_of_verbs())));
}

std::optional<Said> Reader::place_arguments() {
  const std::string help = fmt::format("tetractl help {}", call_.verb->name);
  size_t next = 0;
  for (const Argument& argument : call_.verb->arguments) {
    const bool all = argument.times == Argument::Times::kAny;
    if (next == arguments_.size() && argument.times == Argument::Times::kOnce) {
      const std::string choices = choices_of(argument);
      return wrong(fmt::format("{} is missing: {}{}", argument.name, usage_of(*call_.verb),
                               choices.empty() ? "" : fmt::format(" ({})", choices)),
                   help);
    }
    // The last argument may take all that is left.
    while (next < arguments_.size()) {
      call_.words[std::string(argument.name)].push_back(arguments_[next++]);
      if (!all) break;
    }
  }
  if (next == arguments_.size()) return std::nullopt;
  return wrong(fmt::format("'{}' is too much: {}", arguments_[next], usage_of(*call_.verb)), help);
}

std::optional<Said> Reader::set_target() {
  Target& target = call_.target;
  // The option wins over the environment.
  const auto from = [&](std::string_view option, const char* variable, std::string& into) {
    if (const char* set = variable == nullptr ? nullptr : std::getenv(variable)) into = set;
    if (call_.has(option)) into = call_.list(option).back();
  };
  from("host", nullptr, target.host);
  from("token-file", "TETRAD_TOKEN_FILE", target.token_file);
  from("ca-file", "TETRAD_CA_FILE", target.ca_file);
  call_.as_json = call_.has("json") || call_.has("format");
  for (const std::string& format : call_.list("format"))
    if (format != "json" && format != "yaml")
      return wrong(fmt::format("--format is json or yaml, not '{}'", format));
  const auto number = [&](std::string_view option, auto& into) {
    if (!call_.has(option)) return true;
    const std::string text = call_.list(option).back();
    const char* const end = text.data() + text.size();
    const auto [last, error] = std::from_chars(text.data(), end, into);
    return error == std::errc() && last == end && into != 0;
  };
  if (!number("port", target.port))
    return wrong(fmt::format("'{}' is no port", call_.list("port").back()));
  constexpr uint32_t kTimeLimitMax_s = 86'400;
  auto limit_s = static_cast<uint32_t>(target.time_limit.count());
  if (!number("timeout", limit_s) || limit_s > kTimeLimitMax_s)
    return wrong(fmt::format("--timeout is a whole number of seconds from 1 to {}, not '{}'",
                             kTimeLimitMax_s, call_.list("timeout").back()));
  target.time_limit = std::chrono::seconds(limit_s);
  return std::nullopt;
}

// The part of the help about options, a line each.
std::string options_text(const std::vector<Option>& options) {
  std::string out;
  for (const Option& option : options) {
    std::string names = fmt::format("{}", fmt::join(split(option.names, ' '), ", "));
    if (!option.value.empty()) names += fmt::format(" {}", option.value);
    out += fmt::format("  {:<30}  {}\n", names,
                       option.idle.empty() ? std::string(option.help)
                                           : fmt::format("of nodetool; {}", option.idle));
  }
  return out;
}

}  // namespace

std::string_view Option::key() const {
  const size_t last = names.rfind(' ');
  std::string_view name = last == std::string_view::npos ? names : names.substr(last + 1);
  return name.substr(name.find_first_not_of('-'));
}

std::string Invocation::text(std::string_view name) const {
  return fmt::format("{}", fmt::join(list(name), ","));
}

std::vector<std::string> Invocation::list(std::string_view name) const {
  const auto found = words.find(name);
  return found == words.end() ? std::vector<std::string>() : found->second;
}

std::variant<Said, Invocation> read_command_line(const std::vector<std::string>& line) {
  Reader reader(line);
  if (auto said = reader.read()) return std::move(*said);
  return reader.take();
}

// By theme, in the order of the table of verbs.
std::string help_text() {
  std::string out =
      "tetractl [-h HOST] [-p PORT] VERB ...: asks and orders a Tetrad node through its admin "
      "port.\n"
      "It takes nodetool's words where the thing is the same. tetractl help VERB tells more.\n";
  std::string_view theme;
  for (const Verb& verb : verbs()) {
    if (verb.theme != theme) out += fmt::format("\n{}:\n", verb.theme);
    theme = verb.theme;
    std::string names(verb.name);
    for (const std::string_view alias : verb.aliases) names += fmt::format(", {}", alias);
    out += fmt::format("  {:<30}  {}\n", names, verb.summary);
  }
  return out + "\nOptions of all, before or after the verb:\n" + options_text(common_options());
}

std::string help_text(const Verb& verb) {
  std::string out = fmt::format("{}: {}\n", usage_of(verb), verb.summary);
  if (!verb.aliases.empty()) out += fmt::format("\nAlso: {}\n", fmt::join(verb.aliases, ", "));
  for (const Argument& argument : verb.arguments)
    if (const std::string choices = choices_of(argument); !choices.empty())
      out += fmt::format("\n{}\n", choices);
  if (!verb.options.empty()) out += "\nOptions:\n" + options_text(verb.options);
  return out + "\nOptions of all verbs: tetractl --help\n";
}

// One case for each verb with options of its own, or words that its first argument may be. Written
// to completion.bash, which a test compares.
std::string completion_script() {
  std::string cases;
  for (const Verb& verb : verbs()) {
    const std::string_view choices =
        verb.arguments.empty() ? std::string_view() : verb.arguments.front().choices;
    if (verb.options.empty() && choices.empty()) continue;
    std::string options;
    for (const Option& option : verb.options)
      for (const std::string& name : split(option.names, ' '))
        options += (options.empty() ? "" : " ") + name;
    std::string names(verb.name);
    for (const std::string_view alias : verb.aliases) names += fmt::format(" | {}", alias);
    cases += fmt::format("    {})", names);
    if (!options.empty()) cases += fmt::format(" options=\"{}\"", options);
    if (!choices.empty()) cases += fmt::format(" choices=\"{}\"", choices);
    cases += " ;;\n";
  }
  return fmt::format(
      "# SPDX-License-Identifier: Apache-2.0\n"
      "# bash completes the verbs and options of tetractl. Made by `tetractl completion`; source "
      "it,\n"
      "# or put it into /etc/bash_completion.d.\n"
      "_tetractl() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} last=${{COMP_WORDS[COMP_CWORD - 1]}}\n"
      "  local verb=\"\" options=\"\" choices=\"\" i\n"
      "  local common=\"{}\"\n"
      "  local verbs=\"help {}\"\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    case ${{COMP_WORDS[i]}} in\n"
      "      -h | --host | -p | --port | --token-file | --ca-file | -u | --username | -pw | "
      "--password | -pwf | --password-file | --timeout | -F | --format) ((i++)) ;;\n"
      "      -* | help) ;;\n"
      "      *) verb=${{COMP_WORDS[i]}}; break ;;\n"
      "    esac\n"
      "  done\n"
      "  case $verb in\n"
      "{}"
      "  esac\n"
      "  # Names of files only where one is meant; names that only a node knows are not asked "
      "for.\n"
      "  case $last in\n"
      "    --token-file | --ca-file | -pwf | --password-file) COMPREPLY=($(compgen -f -- "
      "\"$word\")); return ;;\n"
      "    -F | --format) COMPREPLY=($(compgen -W \"json yaml\" -- \"$word\")); return ;;\n"
      "  esac\n"
      "  if [[ $word == -* ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$options $common\" -- \"$word\"))\n"
      "  elif [ -z \"$verb\" ]; then\n"
      "    COMPREPLY=($(compgen -W \"$verbs\" -- \"$word\"))\n"
      "  elif [ \"$last\" != \"$verb\" ]; then\n"
      "    COMPREPLY=()\n"
      "  elif [ \"$choices\" = {} ]; then\n"
      "    COMPREPLY=($(compgen -d -- \"$word\"))\n"
      "  else\n"
      "    COMPREPLY=($(compgen -W \"$choices\" -- \"$word\"))\n"
      "  fi\n"
      "}}\n"
      "complete -F _tetractl tetractl\n",
      fmt::join(names_of_options(nullptr), " "), fmt::join(names_of_verbs(), " "), cases,
      Argument::kDirectories);
}

}  // namespace tetrad::tools

// SPDX-License-Identifier: Apache-2.0
// What a verb of tetractl is: the words it takes, what it asks of a node, how the answer is shown.
// The table of all of them is in verbs.cc.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/tetractl/admin_client.h"

namespace tetrad::tools {

/// A word behind the verb, by its place. Only the last may be kAny.
/// Arguments are named in the usage and sent under their names.
struct Argument {
  /// How often the word may stand: once, once or not at all, any number of times.
  /// In the usage: name, [name], [name...].
  enum class Times : uint8_t { kOnce, kMaybe, kAny };
  /// As `choices`: bash offers folders.
  static constexpr std::string_view kDirectories = "/";
  std::string_view name;
  Times times;
  /// With blanks between: what bash offers; only of a verb's first word. The node checks the word.
  std::string_view choices = "";
};

/// "-t --tag": its value, or that it was said, is kept under the name that comes last, "tag".
/// An option may be said several times; all its values are kept, and most verbs take the last.
struct Option {
  // Separated by blanks.
  std::string_view names;
  std::string_view value;  // what it takes, for the help; empty: it is a flag
  // A sentence without its end; empty for those that change nothing.
  std::string_view help;
  /// nodetool's, taken so that its scripts run: why it changes nothing here. Said when it is used.
  std::string_view idle = "";

  std::string_view key() const;
};

struct Verb;

/// One call of the program, as the command line has it.
/// Made by read_command_line(); a verb's function takes what it needs of it. `words` has arguments
/// by their names and options by Option::key().
struct Invocation {
  const Verb* verb = nullptr;
  std::map<std::string, std::vector<std::string>, std::less<>> words;  // of arguments and options
  Target target;
  // Answers are printed as they came, for programs.
  bool as_json = false;
  std::vector<std::string> notes;  // for standard error: of options that change nothing

  /// Whether the word or option was said; names as Option::key() and Argument::name have them.
  bool has(std::string_view name) const { return words.contains(name); }
  /// With commas between; empty: it was not said.
  std::string text(std::string_view name) const;
  std::vector<std::string> list(std::string_view name) const;
};

/// A row of the table. Either it asks one thing, or `run` does all.
/// Made by a chain of the functions below, each of which sets one thing: Verb("flush",
/// "…").takes({…}).orders("/flush", {…}). Lives as long as the program, as all texts in it.
struct Verb {
  /// What a verb asks of a node: nothing, something it knows, or that it does something.
  /// kFact is a GET, kOrder a POST with the token.
  enum class Asks : uint8_t { kNothing, kFact, kOrder };
  // Both give the exit code of the program.
  using Print = int (*)(const nlohmann::json& answer, const Invocation& call);
  using Run = int (*)(AdminClient& node, const Invocation& call);

  Verb(std::string_view its_name, std::string_view its_summary)
      : name(its_name), summary(its_summary) {}

  /// Other words for it, nodetool's among them.
  Verb&& also(std::vector<std::string_view> names) && {
    aliases = std::move(names);
    return std::move(*this);
  }
  /// Words behind the verb, in this order.
  Verb&& takes(std::vector<Argument> words) && {
    arguments = std::move(words);
    return std::move(*this);
  }
  /// Options beside those of all verbs.
  Verb&& with(std::vector<Option> said) && {
    options = std::move(said);
    return std::move(*this);
  }
  /// `sent`: the words that go along, under their names.
  Verb&& asks_for(std::string_view fact, std::vector<std::string_view> sent = {}) && {
    asks = Asks::kFact, path = fact, parameters = std::move(sent);
    return std::move(*this);
  }
  /// As asks_for(), with POST and the node's token.
  Verb&& orders(std::string_view order, std::vector<std::string_view> sent = {}) && {
    asks = Asks::kOrder, path = order, parameters = std::move(sent);
    return std::move(*this);
  }
  /// Only where --json is not said.
  Verb&& shown_by(Print function) && {
    print = function;
    return std::move(*this);
  }
  /// Then the others say nothing but what the help shows.
  Verb&& done_by(Run function) && {
    run = function;
    return std::move(*this);
  }

  // Set by verbs(), as each function there has the verbs of one theme.
  std::string_view theme;  // heading in the help
  std::string_view name;
  // nodetool's word, where the verb has one of its own.
  std::vector<std::string_view> aliases;
  std::string_view summary;
  std::vector<Argument> arguments;
  std::vector<Option> options;
  Asks asks = Asks::kNothing;
  // For a verb without `run`: the path on the admin port, and the names of words that are sent as
  // its parameters.
  std::string_view path;
  std::vector<std::string_view> parameters;
  Print print = nullptr;  // unset: what there is besides "ok"
  // Unset: main.cc asks `path` and prints.
  Run run = nullptr;
};

/// A word of nodetool that is no verb here. Its arguments are not looked at.
/// So that scripts written for nodetool get a sentence and not "no such command".
struct OtherWord {
  std::string_view name, why;
  /// What it is said for is the case here anyway: a script goes on.
  /// Otherwise exit code 1.
  bool is_fulfilled;
};

/// In the order of the help, those of one theme together.
/// Made at the first call, and the same for the life of the program.
const std::vector<Verb>& verbs();
const std::vector<OtherWord>& other_words();

}  // namespace tetrad::tools

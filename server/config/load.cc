// SPDX-License-Identifier: Apache-2.0
// Reading options from a YAML file (yaml-cpp) and from the command line (CLI11).
//
//   1. The command line is read first, for --config alone.
//   2. The file sets options over the defaults; each name at most once.
//   3. The command line's options are set over those.
// The table of options decides what a value may be; no option has code of its own here.
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <optional>

#include <CLI/CLI.hpp>
#include <yaml-cpp/yaml.h>

#include "base/closest_name.h"
#include "server/config/cassandra_names.h"
#include "server/config/options.h"

namespace tetrad::server {
namespace {

constexpr std::string_view kDataDirectory = "data_directory";

/// 0 for what is no unit here.
uint64_t unit_factor(OptionUnit unit, std::string_view text) {
  using Names = std::map<std::string_view, uint64_t>;
  if (text.empty()) return 1;
  const Names names = unit == OptionUnit::kBytes
                          ? Names{{"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}}
                      : unit == OptionUnit::kSeconds
                          ? Names{{"s", 1}, {"m", 60}, {"h", 3'600}, {"d", 86'400}}
                          : Names{};
  const auto found = names.find(text);
  return found == names.end() ? 0 : found->second;
}

/// What a number counts, and what may stand in its place: "; milliseconds, without a unit".
/// The unit is in the name: that is what the name's ending says.
std::string number_form(const OptionEntry& entry) {
  if (entry.unit == OptionUnit::kBytes) return "; bytes, or with one of B, KiB, MiB, GiB behind it";
  if (entry.unit == OptionUnit::kSeconds) return "; seconds, or with one of s, m, h, d behind it";
  const std::string_view name = entry.name;
  const char* const counted = name.ends_with("_ms")                                ? "milliseconds"
                              : name.ends_with("_s")                               ? "seconds"
                              : name.ends_with("_hours")                           ? "hours"
                              : name.ends_with("_kb")                              ? "KiB"
                              : name.ends_with("_mb") || name.ends_with("_mb_max") ? "MiB"
                                                                                   : "";
  std::string out = *counted == '\0' ? "" : fmt::format("; {}, without a unit", counted);
  if (may_be_automatic(entry)) out += "; or auto";
  return out;
}

std::string in_lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

/// The word that is meant: case counts for nothing, nor does the package of a class of Cassandra's.
/// "": it is none of them.
std::string choice_of(const OptionEntry& entry, std::string_view value) {
  constexpr std::string_view kPackage = "org.apache.cassandra.auth.";
  if (value.starts_with(kPackage)) value.remove_prefix(kPackage.size());
  for (const std::string_view choice : entry.choices)
    if (in_lower_case(choice) == in_lower_case(value)) return std::string(choice);
  return "";
}

/// YAML 1.1's words, which Cassandra takes.
std::optional<bool> switch_of(const std::string& value) {
  const std::string word = in_lower_case(value);
  // It has no tRUE and no yEs: either all letters are of one case, or the first alone is large.
  std::string capital = word, upper = word;
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (!word.empty()) capital[0] = upper[0];
  if (value != word && value != capital && value != upper) return std::nullopt;
  for (const char* yes : {"true", "yes", "on", "y"})
    if (word == yes) return true;
  for (const char* no : {"false", "no", "off", "n"})
    if (word == no) return false;
  return std::nullopt;
}

Result<void> set_option(Options& options, const OptionEntry& entry, const std::string& value) {
  if (const auto* text = std::get_if<std::string Options::*>(&entry.target)) {
    if (!entry.choices.empty()) {
      const auto choice = choice_of(entry, value);
      if (choice.empty())
        return fail(ErrorCode::kConfig, "{}: '{}' is none of {}", entry.name, value,
                    fmt::join(entry.choices, ", "));
      options.** text = choice;
      return {};
    }
    if (entry.name == kDataDirectory && value.find(',') != std::string::npos)
      return fail(ErrorCode::kConfig,
                  "{}: '{}' has a comma: a node has one data directory, whose path has none",
                  entry.name, value);
    // `text` points to a pointer to member.
    options.** text = value;
    return {};
  }
  if (const auto* flag = std::get_if<bool Options::*>(&entry.target)) {
    const auto is = switch_of(value);
    if (!is)
      return fail(ErrorCode::kConfig, "{}: '{}' is neither true nor false", entry.name, value);
    options.** flag = *is;
    return {};
  }
  if (may_be_automatic(entry) && value == "auto") {
    options.*std::get<uint64_t Options::*>(entry.target) = kAutomatic;
    return {};
  }
  uint64_t number = 0;
  const char* const last = value.data() + value.size();
  const auto [end, error] = std::from_chars(value.data(), last, number);
  const uint64_t factor = unit_factor(entry.unit, std::string_view(end, last));
  // The comparison with most / factor comes before the product, so that nothing overflows.
  if (error != std::errc() || factor == 0 || number > entry.most / factor ||
      number * factor < entry.least) {
    return fail(ErrorCode::kConfig, "{}: '{}' is no whole number from {} to {}{}", entry.name,
                value, entry.least, entry.most, number_form(entry));
  }
  options.*std::get<uint64_t Options::*>(entry.target) = number * factor;
  return {};
}

/// The only name that begins with `word`: data_dir is data_directory. Otherwise empty.
std::string only_name_from(const std::string& word, const std::vector<std::string>& names) {
  constexpr size_t kLettersLeast = 4;
  if (word.size() < kLettersLeast) return "";
  const auto begins = [&](const std::string& name) { return name.starts_with(word); };
  const auto found = std::ranges::find_if(names, begins);
  return std::ranges::count_if(names, begins) == 1 ? *found : "";
}

/// "; did you mean ...?", or what Cassandra's option is here, or nothing.
std::string suggestion(const std::string& word, bool on_command_line) {
  std::vector<std::string> names;
  for (const OptionEntry& entry : option_table())
    names.push_back(on_command_line ? command_line_name(entry) : entry.name);
  if (on_command_line) names.insert(names.end(), {"--config", "--help", "--version"});
  std::string spelled = word.substr(0, word.find('='));
  // --num-tokens is num_tokens of cassandra.yaml.
  std::string in_file = spelled;
  if (on_command_line) {
    in_file.erase(0, std::min(in_file.find_first_not_of('-'), in_file.size()));
    std::replace(in_file.begin(), in_file.end(), '-', '_');
  }
  if (std::string hint = cassandra_hint(in_file); !hint.empty()) return hint;
  // The table has both forms of a name.
  if (on_command_line) std::replace(spelled.begin(), spelled.end(), '_', '-');
  std::string found = base::closest_name(spelled, names);
  // What is cut off may be more letters than closest_name() lets be wrong.
  if (found.empty()) found = only_name_from(spelled, names);
  return found.empty() ? "" : fmt::format("; did you mean {}?", found);
}

/// What YAML's value says, as it would stand on the command line.
Result<std::string> text_of(const OptionEntry& entry, const YAML::Node& value) {
  if (value.IsNull())
    return fail(ErrorCode::kConfig, "{}: there is no value behind it", entry.name);
  if (value.IsScalar()) return value.as<std::string>();
  // A list in YAML is a text with commas: seeds, names of properties.
  if (!value.IsSequence() || !entry.is_list)
    return fail(ErrorCode::kConfig, "{}: takes one value, not a {}{}", entry.name,
                value.IsMap() ? "map" : "list",
                entry.name == kDataDirectory ? ": a node has one data directory" : "");
  std::string out;
  for (const auto& item : value) {
    if (!item.IsScalar())
      return fail(ErrorCode::kConfig, "{}: its list has single values, no {}", entry.name,
                  item.IsNull()  ? "empty ones"
                  : item.IsMap() ? "maps"
                                 : "lists");
    out += (out.empty() ? "" : ", ") + item.as<std::string>();
  }
  return out;
}

/// Whether a line begins as an option does: `name:` at its start.
std::string_view name_at_start(std::string_view line) {
  const size_t end = line.find(':');
  if (end == 0 || end == std::string_view::npos) return {};
  if (end + 1 < line.size() && std::isspace(static_cast<unsigned char>(line[end + 1])) == 0)
    return {};
  const std::string_view name = line.substr(0, end);
  const auto is_of_name = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return std::ranges::all_of(name, is_of_name) ? name : std::string_view();
}

/// A quote that is not closed takes the lines behind it into its value, and YAML has nothing against
/// that: seeds and authenticator would be at their defaults, unseen. So a line that looks like an
/// option must be one. `names` are the options of the file by their lines, counted from 1.
void find_swallowed_lines(std::string_view text, const std::map<int, std::string>& names,
                          const std::function<void(int, std::string)>& note) {
  int line = 0;
  for (size_t at = 0; at < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view name = name_at_start(text.substr(at, end - at));
    at = end + 1;
    const int number = line + 1;  // as an editor counts
    const auto behind = names.upper_bound(number);
    if (name.empty() || behind == names.begin() || names.contains(number)) continue;
    return note(number, fmt::format("({}: ...) is inside the value of '{}', of line {}: is a quote "
                                    "or a bracket not closed there?",
                                    name, std::prev(behind)->second, std::prev(behind)->first));
  }
}

/// YAML takes the end of a line at the end of the file for the end of a quote.
bool ends_in_quote(std::string text) {
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  try {
    YAML::Load(text);
    return false;
  } catch (const YAML::Exception&) {  // the whole text has been read before
    return true;
  }
}

Result<std::string> text_of_file(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    return fail(ErrorCode::kConfig, "config: {} is a directory, not a file", path);
  std::ifstream file(path, std::ios::binary);
  std::string out{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file)
    return fail(ErrorCode::kConfig, "config: {} cannot be read: {}", path, std::strerror(errno));
  return out;
}

Result<void> read_file(const std::string& path, Options& options) {
  TETRAD_TRY(const std::string text, text_of_file(path));
  try {
    std::map<std::string, int> seen;    // by name, the line
    std::map<int, std::string> places;  // by line, the name
    // By line: all that is, so that one start tells it.
    std::map<int, std::vector<std::string>> wrong;
    const auto note = [&](int line, std::string what) {
      wrong[line].push_back(fmt::format("line {}: {}", line, what));
    };
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.empty() || (documents.size() == 1 && documents[0].IsNull())) return {};
    const YAML::Node& root = documents[0];
    if (!root.IsMap())
      return fail(ErrorCode::kConfig, "{}: line {}: not a list of `name: value` lines", path,
                  root.Mark().line + 1);
    if (documents.size() > 1)
      return fail(ErrorCode::kConfig, "{}: more than one document: what is behind a second '---'?",
                  path);
    for (const auto& pair : root) {
      const int line = pair.first.Mark().line + 1;  // yaml-cpp counts from 0
      if (!pair.first.IsScalar()) {
        note(line, "not a `name: value` line");
        continue;
      }
      const auto name = pair.first.as<std::string>();
      places[line] = name;
      const auto [before, is_first] = seen.emplace(name, line);
      if (!is_first) {
        note(line, fmt::format("{}: said twice, first in line {}", name, before->second));
        continue;
      }
      const auto& table = option_table();
      const auto entry =
          std::find_if(table.begin(), table.end(), [&](const auto& e) { return e.name == name; });
      if (entry == table.end()) {
        note(line, fmt::format("there is no option '{}'{}", name, suggestion(name, false)));
        continue;
      }
      const auto value = text_of(*entry, pair.second);
      const auto set = value ? set_option(options, *entry, *value)
                             : Result<void>(std::unexpected(value.error()));
      if (!set) note(line, set.error().message);
    }
    find_swallowed_lines(text, places, note);
    if (wrong.empty() && !places.empty() && ends_in_quote(text))
      note(places.rbegin()->first,
           fmt::format("{}: a quote is not closed", places.rbegin()->second));
    if (wrong.empty()) return {};
    std::string all;
    for (const auto& [line, of_line] : wrong)
      for (const std::string& one : of_line)
        all += fmt::format("{}{}: {}", all.empty() ? "" : "\n", path, one);
    return fail(ErrorCode::kConfig, "{}", all);
  } catch (const YAML::Exception& e) {
    return fail(ErrorCode::kConfig, "{}: {}", path, e.what());
  }
}

}  // namespace

Result<CommandLine> read_command_line(int argc, const char* const* argv) {
  CommandLine line;
  CLI::App app;
  app.set_help_flag();
  // Unknown words are reported below with what was probably meant, which CLI11 does not do.
  app.allow_extras();
  std::string config_path;
  std::map<std::string_view, std::string> values;
  app.add_flag("-h,--help", line.show_help);
  app.add_flag("-v,--version", line.show_version);
  app.add_flag("--print-config", line.print_config);
  app.add_flag("--check-config", line.check_config);
  app.add_option("--config", config_path);
  for (const OptionEntry& entry : option_table()) {
    const std::string name = command_line_name(entry);
    auto* option = app.add_option(name, values[entry.name]);
    if (std::holds_alternative<bool Options::*>(entry.target))
      // A switch may stand alone: --found.
      option->expected(0, 1)->default_str("true");
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ArgumentMismatch& e) {
    // Its own words are "--name: 1 required TEXT missing" and "--name: At Most 1 required ...".
    const std::string said = e.what();
    const std::string name = said.substr(0, said.find(':'));
    if (said.ends_with(" missing"))
      return fail(ErrorCode::kConfig, "{}: a value is missing behind it", name);
    if (said.find(": At Most 1 ") != std::string::npos)
      return fail(ErrorCode::kConfig, "{}: said twice", name);
    return fail(ErrorCode::kConfig, "{}", said);
  } catch (const CLI::ParseError& e) {
    std::string message = e.what();
    std::replace(message.begin(), message.end(), '\n', ' ');
    return fail(ErrorCode::kConfig, "{}", message);
  }
  if (const auto unknown = app.remaining(); !unknown.empty()) {
    if (!unknown.front().starts_with('-'))
      return fail(ErrorCode::kConfig, "'{}' is no option: those begin with --", unknown.front());
    return fail(ErrorCode::kConfig, "there is no option '{}'{}", unknown.front(),
                suggestion(unknown.front(), true));
  }
  if (!config_path.empty()) TETRAD_TRY_VOID(read_file(config_path, line.options));
  for (const OptionEntry& entry : option_table()) {
    const std::string name = command_line_name(entry);
    if (app.count(name) == 0) continue;
    std::string value = values[entry.name];
    if (value.empty() && std::holds_alternative<bool Options::*>(entry.target)) value = "true";
    TETRAD_TRY_VOID(set_option(line.options, entry, value));
  }
  return line;
}

}  // namespace tetrad::server

// SPDX-License-Identifier: Apache-2.0
// Reading options from a YAML file (yaml-cpp) and from the command line (CLI11).
#include <cerrno>
#include <charconv>
#include <cstring>
#include <map>

#include <CLI/CLI.hpp>
#include <yaml-cpp/yaml.h>

#include "base/closest_name.h"
#include "server/config/options.h"

namespace tetrad::server {
namespace {

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

Result<void> set_option(Options& options, const OptionEntry& entry, const std::string& value) {
  if (const auto* text = std::get_if<std::string Options::*>(&entry.target)) {
    if (!entry.choices.empty() &&
        std::find(entry.choices.begin(), entry.choices.end(), value) == entry.choices.end()) {
      std::string allowed;
      for (const auto choice : entry.choices)
        allowed += (allowed.empty() ? "" : ", ") + std::string(choice);
      return fail(ErrorCode::kConfig, "{}: '{}' is none of {}", entry.name, value, allowed);
    }
    options.** text = value;
    return {};
  }
  if (const auto* flag = std::get_if<bool Options::*>(&entry.target)) {
    if (value != "true" && value != "false") {
      return fail(ErrorCode::kConfig, "{}: '{}' is neither true nor false", entry.name, value);
    }
    options.** flag = value == "true";
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
  if (error != std::errc() || factor == 0 || number > entry.most / factor ||
      number * factor < entry.least) {
    return fail(ErrorCode::kConfig, "{}: '{}' is no whole number from {} to {}", entry.name, value,
                entry.least, entry.most);
  }
  options.*std::get<uint64_t Options::*>(entry.target) = number * factor;
  return {};
}

/// "; did you mean ...?" or nothing.
std::string suggestion(const std::string& word, bool on_command_line) {
  std::vector<std::string> names;
  for (const OptionEntry& entry : option_table())
    names.push_back(on_command_line ? command_line_name(entry) : entry.name);
  if (on_command_line) names.insert(names.end(), {"--config", "--help", "--version"});
  std::string spelled = word.substr(0, word.find('='));
  if (on_command_line) std::replace(spelled.begin(), spelled.end(), '_', '-');
  const std::string found = base::closest_name(spelled, names);
  return found.empty() ? "" : fmt::format("; did you mean {}?", found);
}

Result<void> read_file(const std::string& path, Options& options) {
  try {
    const YAML::Node root = YAML::LoadFile(path);
    if (root.IsNull()) return {};
    if (!root.IsMap())
      return fail(ErrorCode::kConfig, "{}: not a list of `name: value` lines", path);
    for (const auto& pair : root) {
      const auto name = pair.first.as<std::string>();
      const auto& table = option_table();
      const auto entry =
          std::find_if(table.begin(), table.end(), [&](const auto& e) { return e.name == name; });
      if (entry == table.end())
        return fail(ErrorCode::kConfig, "{}: there is no option '{}'{}", path, name,
                    suggestion(name, false));
      std::string value;
      if (pair.second.IsSequence() &&
          std::holds_alternative<std::string Options::*>(entry->target)) {
        for (const auto& item : pair.second)
          value += (value.empty() ? "" : ", ") + item.as<std::string>();
      } else if (pair.second.IsScalar()) {
        value = pair.second.as<std::string>();
      } else {
        return fail(ErrorCode::kConfig, "{}: {}: not a single value", path, name);
      }
      if (auto set = set_option(options, *entry, value); !set) {
        return fail(ErrorCode::kConfig, "{}: {}", path, set.error().message);
      }
    }
    return {};
  } catch (const YAML::BadFile&) {
    return fail(ErrorCode::kConfig, "config: {} cannot be read: {}", path, std::strerror(errno));
  } catch (const YAML::Exception& e) {
    return fail(ErrorCode::kConfig, "{}: {}", path, e.what());
  }
}

}  // namespace

Result<CommandLine> read_command_line(int argc, const char* const* argv) {
  CommandLine line;
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::string config_path;
  std::map<std::string_view, std::string> values;
  app.add_flag("--help", line.show_help);
  app.add_flag("--version", line.show_version);
  app.add_flag("--print-config", line.print_config);
  app.add_option("--config", config_path);
  for (const OptionEntry& entry : option_table()) {
    const std::string name = command_line_name(entry);
    auto* option = app.add_option(name, values[entry.name]);
    if (std::holds_alternative<bool Options::*>(entry.target))
      option->expected(0, 1)->default_str("true");
  }
  try {
    app.parse(argc, argv);
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

// SPDX-License-Identifier: Apache-2.0
// Which options belong together, for who reads the help.
//
// --help, conf/tetrad.yaml and conf/README.md are in this order; the table of options itself is not.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace tetrad::server {

/// A heading, and the options under it: names, or with '*' at the end how they begin.
struct OptionTheme {
  std::string_view title;
  std::vector<std::string_view> names;

  bool has(std::string_view option) const;
};

/// In the order of the help. An option belongs to one; what no other names is a guardrail, the last.
const std::vector<OptionTheme>& option_themes();
/// Every option has one: the last theme takes all.
const OptionTheme& theme_of(std::string_view option);

}  // namespace tetrad::server

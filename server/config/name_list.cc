// SPDX-License-Identifier: Apache-2.0
// Blanks count for nothing anywhere, since no name of an option's list has one.
#include "server/config/name_list.h"

#include <algorithm>
#include <cctype>

namespace tetrad::server {

std::vector<std::string> names_in(const std::string& list, Letters letters) {
  std::vector<std::string> out;
  std::string name;
  for (const char c : list + ",") {
    if (c == ',') {
      if (!name.empty()) out.push_back(name);
      name.clear();
    } else if (c != ' ') {
      const auto byte = static_cast<unsigned char>(c);
      name.push_back(letters == Letters::kUpper   ? static_cast<char>(std::toupper(byte))
                     : letters == Letters::kLower ? static_cast<char>(std::tolower(byte))
                                                  : c);
    }
  }
  std::ranges::sort(out);
  return out;
}

}  // namespace tetrad::server

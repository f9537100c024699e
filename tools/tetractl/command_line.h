// SPDX-License-Identifier: Apache-2.0
// Reads the command line by the table of verbs. nodetool's manners hold: options stand before or
// after the verb, some have two letters behind one dash, -h is the host.
#pragma once

#include <string>
#include <variant>

#include "tools/tetractl/verb.h"

namespace tetrad::tools {

/// Nothing is asked: the text is printed, and the program ends with the code.
/// Help, version and every complaint: in these cases no node is asked.
struct Said {
  std::string text;
  int exit_code;  // 2: the command line is wrong, the text goes to standard error
};

/// `line` without the program's name. Environment variables (TETRAD_TOKEN_FILE, TETRAD_CA_FILE)
/// hold where the line says nothing.
/// An Invocation has its verb, and every argument that the verb needs; a value's meaning is checked
/// by whoever uses it.
std::variant<Said, Invocation> read_command_line(const std::vector<std::string>& line);

/// All verbs by theme; or one of them with its words.
/// As --help, `help` and `help VERB` print them.
std::string help_text();
std::string help_text(const Verb& verb);
/// A script for bash that completes verbs and options.
std::string completion_script();

}  // namespace tetrad::tools

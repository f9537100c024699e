// SPDX-License-Identifier: Apache-2.0
// "Did you mean ...?"
//
// For words that an operator has written: names of options, verbs and settings.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tetrad::base {

/// The name that fewest edits make of `word`, if they are no more than a third of its letters;
/// otherwise empty. Of several the first.
/// Pure. The work is bounded: words of more than a hundred letters find nothing.
std::string closest_name(std::string_view word, std::span<const std::string> names);

/// "; did you mean NAME?" of the closest name, to stand behind what is wrong, or `otherwise`. Pure,
/// and bounded as above.
std::string did_you_mean(std::string_view word, std::span<const std::string> names,
                         std::string_view otherwise = "");

}  // namespace tetrad::base

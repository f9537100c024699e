// SPDX-License-Identifier: Apache-2.0
// What a fuzz target may add for driver.cc: inputs worth mutating, when they are easier made than
// kept as files. A target need not define it.
#pragma once

#include <string>
#include <vector>

std::vector<std::string> fuzz_seeds();

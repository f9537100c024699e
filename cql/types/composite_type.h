// SPDX-License-Identifier: Apache-2.0
// Cassandra's CompositeType and DynamicCompositeType: classes that CQL has no names for, of tables
// that were made by Thrift. A column has them by the name of the class; drivers see bytes:
//
//   value      = component*                       ; CompositeType: may begin with 0xFFFF (static)
//   component  = [comparator] length:u16 value eoc:u8
//   comparator = 0x80 alias:u8                    ; DynamicCompositeType only
//              | length:u16 class-name
//
// eoc is 0 but in the last component, where 1 and 0xFF say "after" and "before" all that begin
// alike. Example, CompositeType(UTF8Type, Int32Type) of 'ab:7': 0002 6162 00 0004 00000007 00.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cql/types/data_type.h"

namespace tetrad::cql {

/// A composite class, as its name says.
struct CompositeClass {
  std::string name;  // all class names in full, aliases in Cassandra's order
  bool dynamic = false;
  std::vector<TypePtr> components;                // of CompositeType
  std::vector<std::pair<char, TypePtr>> aliases;  // of DynamicCompositeType
};

/// Whether it begins like one.
bool is_composite_class(std::string_view class_name);
/// Reads what is_composite_class() has accepted, with short or full names of classes. Errors:
/// kInvalid "Invalid definition for comparator …".
Result<CompositeClass> parse_composite_class(std::string_view class_name);
/// Whether Cassandra has a class of this name that is no CQL type.
bool is_other_class(std::string_view class_name);
/// The class name and those between its parentheses with their packages, without spaces.
std::string with_packages(std::string_view class_name);

/// AbstractCompositeType.fromString: components with ':' between them, each with its alias or class
/// and '@' before it if the class is dynamic; "\:" is a colon of a component; a last component "!"
/// or "_" is an end-of-component byte of 1 or -1. Errors: kInvalid.
Result<Bytes> composite_from_string(const CompositeClass& composite, std::string_view text);
/// Errors: kInvalid with Cassandra's message.
Result<void> validate_composite(const CompositeClass& composite, BytesView value);

}  // namespace tetrad::cql

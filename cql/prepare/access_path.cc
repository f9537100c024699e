// SPDX-License-Identifier: Apache-2.0
// Which index a SELECT reads. An index answers questions (IndexQuestion); a restriction asks one or
// several.
//
// 1. has_index(): whether any index answers anything of a restriction. It decides which checks of
//    WHERE apply.
// 2. serves_all(): whether one index, or the SAI indexes of a table together, answer all of the
//    restrictions. If not, ALLOW FILTERING is needed, as in Cassandra.
// 3. choose_index(): exactly one index is read, even where several answer: the one of the best
//    class and question. All restrictions stay filters, so a wrong choice costs time and no rows.
#include "cql/prepare/access_path.h"

#include <algorithm>
#include <array>

#include "cql/prepare/restrictions.h"

namespace tetrad::cql {

namespace {

using Kind = Restriction::Kind;

/// A question for each kind of condition in the restriction.
// IN and negated relations ask nothing: no index is read for them.
std::vector<IndexQuestion> questions_of(const Restriction& restriction) {
  std::vector<IndexQuestion> questions;
  switch (restriction.kind) {
    case Kind::kEqual:
      questions.push_back(IndexQuestion::kEqual);
      break;
    case Kind::kSlice:
      questions.push_back(IndexQuestion::kRange);
      break;
    case Kind::kContains:
      if (!restriction.contains.empty()) questions.push_back(IndexQuestion::kContains);
      if (!restriction.contains_key.empty()) questions.push_back(IndexQuestion::kContainsKey);
      if (!restriction.entries.empty()) questions.push_back(IndexQuestion::kEntry);
      break;
    case Kind::kLike:
      questions.push_back(IndexQuestion::kLike);
      break;
    case Kind::kIn:
    case Kind::kNotIn:
    case Kind::kNotContains:
      break;
  }
  return questions;
}

/// SAI keeps these in their order; a uuid only where a clustering column descends, as in Cassandra.
bool has_sai_ranges(const ColumnSchema& column) {
  const DataType& type = *column.type;
  return type.is_native() && !is_literal_term(&type) &&
         (type.kind() != TypeKind::kUuid || column.descending);
}

bool sasi_answers(const IndexSchema& index, const ColumnSchema& column, IndexQuestion question) {
  const auto options = sasi_options(*column.type, index.options);
  if (!options) return false;
  switch (question) {
    case IndexQuestion::kEqual:
      return !options->analysis.has_words();
    case IndexQuestion::kRange:
      return !options->is_literal && options->mode != SasiMode::kContains;
    case IndexQuestion::kLike:
      return options->is_literal;
    default:
      return false;
  }
}

/// Whether the index answers something of the restriction on `column`.
bool serves(const IndexSchema& index, const ColumnSchema& column, const Restriction& restriction) {
  const auto questions = questions_of(restriction);
  return std::ranges::any_of(
      questions, [&](IndexQuestion question) { return answers(index, column, question); });
}

bool is_in_group(const IndexSchema& index, const IndexSchema& group) {
  return &index == &group ||
         (index.index_class == IndexClass::kSai && group.index_class == IndexClass::kSai);
}

/// Whether the group that `group` is in serves all of the restriction.
bool group_serves(const TableSchema& table, const IndexSchema& group,
                  const Restriction& restriction) {
  // One lookup of a native index finds one element only.
  const size_t elements =
      restriction.contains.size() + restriction.contains_key.size() + restriction.entries.size();
  // SAI intersects several terms of one collection.
  if (elements > 1 && group.index_class != IndexClass::kSai) return false;
  return std::ranges::all_of(restriction.columns, [&](const ColumnSchema* column) {
    return std::ranges::any_of(table.indexes, [&](const IndexSchema& index) {
      return is_in_group(index, group) && serves(index, *column, restriction);
    });
  });
}

/// In the order in which Cassandra prefers them (prioritize_sai_over_legacy_index: false).
int class_rank(IndexClass index_class) {
  switch (index_class) {
    case IndexClass::kSasi:
      return 0;
    case IndexClass::kLegacy:
      return 1;
    case IndexClass::kSai:
      break;
  }
  return 2;
}

/// Fewer rows are expected first.
// Equality first, then map entries, and ranges last; the numbers are only an order.
int question_rank(IndexQuestion question) {
  constexpr std::array<int, 6> kRanks = {0, 5, 2, 3, 1, 4};  // by IndexQuestion
  return kRanks[static_cast<size_t>(question)];
}

}  // namespace

std::string_view access_name(AccessKind kind) {
  constexpr std::array<std::string_view, 4> kNames = {"partitions", "index in partitions", "range",
                                                      "index"};
  return kNames[static_cast<size_t>(kind)];
}

bool answers(const IndexSchema& index, const ColumnSchema& column, IndexQuestion question) {
  if (index.column != column.name) return false;
  if (index.index_class == IndexClass::kSasi) return sasi_answers(index, column, question);
  switch (index.target) {
    case IndexTarget::kKeys:
      return question == IndexQuestion::kContainsKey;
    case IndexTarget::kValues:
      return question == IndexQuestion::kContains;
    case IndexTarget::kEntries:
      return question == IndexQuestion::kEntry;
    case IndexTarget::kFull:
      return question == IndexQuestion::kEqual;
    // A scalar or a frozen collection as one value.
    case IndexTarget::kSimple:
      break;
  }
  if (is_vector_index(index, *column.type)) return false;
  if (question == IndexQuestion::kEqual) return true;
  return question == IndexQuestion::kRange && index.index_class == IndexClass::kSai &&
         has_sai_ranges(column);
}

bool has_index(const TableSchema& table, const Restriction& restriction) {
  return std::ranges::any_of(table.indexes, [&](const IndexSchema& index) {
    return std::ranges::any_of(restriction.columns, [&](const ColumnSchema* column) {
      return serves(index, *column, restriction);
    });
  });
}

bool serves_all(const TableSchema& table, std::span<const Restriction* const> restrictions,
                std::optional<IndexClass> of_class) {
  return std::ranges::any_of(table.indexes, [&](const IndexSchema& group) {
    if (of_class && group.index_class != *of_class) return false;
    return std::ranges::all_of(restrictions, [&](const Restriction* restriction) {
      return group_serves(table, group, *restriction);
    });
  });
}

std::optional<IndexAccess> choose_index(const TableSchema& table,
                                        std::span<const Restriction* const> restrictions) {
  struct Candidate {
    const IndexSchema* index;
    const Restriction* restriction;
    IndexQuestion question;
    std::pair<int, int> rank;
  };
  std::optional<Candidate> best;
  for (const Restriction* restriction : restrictions) {
    // A tuple is tested row by row; no component is all of it.
    if (restriction->is_multi) continue;
    for (const IndexSchema& index : table.indexes) {
      for (const IndexQuestion question : questions_of(*restriction)) {
        if (!answers(index, restriction->first(), question)) continue;
        const std::pair rank{class_rank(index.index_class), question_rank(question)};
        // The first of equals wins: restrictions in the order of the statement, indexes in that of
        // the table. So each page of a statement chooses the same.
        if (!best || rank < best->rank) best = Candidate{&index, restriction, question, rank};
      }
    }
  }
  if (!best) return std::nullopt;
  auto terms = IndexTerms::of(table, *best->index);
  if (!terms) return std::nullopt;  // the table is scanned then
  return IndexAccess{best->index, std::move(*terms), best->restriction, best->question};
}

// How the filter of a restriction compares texts when an index of class `used` is read. Where an
// index is case-insensitive, for example, a filter that compared bytes would throw away rows that
// the index found rightly.
ComparedTexts compared_texts(const TableSchema& table, IndexClass used,
                             const Restriction& restriction) {
  ComparedTexts texts;
  // All SAI indexes of a table are looked at together, if any is; so are those of SASI.
  if (used == IndexClass::kLegacy || restriction.is_multi) return texts;
  for (const IndexSchema& index : table.indexes) {
    if (index.index_class != used) continue;
    if (used == IndexClass::kSasi) {
      const auto options = sasi_options(*restriction.first().type, index.options);
      if (!options || !options->is_literal || !serves(index, restriction.first(), restriction))
        continue;
      texts.values = options->analysis;
      texts.of_sasi = true;
      texts.every_word = needs_every_word(table, restriction.first());
      texts.bytes_max = sasi_words_bytes_max(*options).value_or(SIZE_MAX);
      continue;
    }
    const auto analysis = text_analysis(index.options);
    if (!analysis || !serves(index, restriction.first(), restriction)) continue;
    (index.target == IndexTarget::kKeys ? texts.keys : texts.values) = *analysis;
    if (!analysis->does_nothing()) texts.bytes_max = kIndexedBytesMax;
  }
  return texts;
}

}  // namespace tetrad::cql

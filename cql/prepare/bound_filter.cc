// SPDX-License-Identifier: Apache-2.0
// The test of one row by a condition with its values.
//
// A condition on a column that is null never holds, but for NOT CONTAINS, which then holds.
// matches() has no errors: a value that does not decode matches nothing. It runs for each row that
// is read, so nothing is allocated on the usual path; texts that an index analyses take the slower
// path of matches_texts().
#include <algorithm>
#include <functional>

#include "cql/prepare/restrictions.h"
#include "cql/types/compare.h"

namespace tetrad::cql {

// The wanted values are analysed once, when they are bound; those of rows when they are compared.
Result<void> BoundFilter::prepare_texts(const ComparedTexts& texts, base::Arena& arena) {
  texts_ = texts;
  if (texts.does_nothing() && restriction_->kind != Restriction::Kind::kLike) return {};
  // Before the work of finding its words.
  if (texts.values.has_words()) {
    for (const BytesView value : tuples_.values) {
      if (value.size() <= kSasiWordsBytesMax) continue;
      return fail(ErrorCode::kInvalid, "LIKE value of {} bytes; words of {} are compared at most",
                  value.size(), kSasiWordsBytesMax);
    }
  }
  const auto compared = [&](const TextAnalysis& analysis, const std::vector<BytesView>& from) {
    std::vector<BytesView> to;
    for (const BytesView value : from) {
      for (Bytes& term : terms_of(analysis, value)) to.push_back(arena.adopt(std::move(term)));
    }
    return to;
  };
  compared_equal_ = compared(texts.values, tuples_.values);
  compared_contains_ = compared(texts.values, contains_);
  compared_contains_key_ = compared(texts.keys, contains_key_);
  // Each is compared with each word of a row.
  if (texts.values.has_words() && compared_equal_.size() > kSasiWordsMax) {
    return fail(ErrorCode::kInvalid, "LIKE value of {} words; {} are compared at most",
                compared_equal_.size(), kSasiWordsMax);
  }
  return {};
}

/// Only a first and a last % stand for anything.
Result<void> BoundFilter::read_pattern(BytesView pattern, const TableSchema& table) {
  const bool is_open_before = pattern.starts_with('%'), is_open_behind = pattern.ends_with('%');
  BytesView text = pattern;
  if (is_open_behind) text.remove_suffix(1);
  // A pattern of a single % has been taken off above.
  if (is_open_before && !text.empty()) text.remove_prefix(1);
  if (text.empty()) return fail(ErrorCode::kInvalid, "LIKE value can't be empty.");
  like_ = is_open_before ? (is_open_behind ? LikeShape::kPart : LikeShape::kSuffix)
                         : (is_open_behind ? LikeShape::kPrefix : LikeShape::kWhole);
  tuples_.values.push_back(text);
  if (like_ == LikeShape::kWhole) return {};
  const ColumnSchema& column = restriction_->first();
  const bool is_served = std::ranges::any_of(table.indexes, [&](const IndexSchema& index) {
    if (!answers(index, column, IndexQuestion::kLike)) return false;
    const auto options = sasi_options(*column.type, index.options);
    return options && serves_like(*options, is_open_before, is_open_behind);
  });
  if (is_served) return {};
  return fail(ErrorCode::kInvalid,
              "{} LIKE '{}<term>{}' {} is only supported on properly indexed columns", column.name,
              is_open_before ? "%" : "", is_open_behind ? "%" : "", text);
}

bool BoundFilter::is_like(BytesView term, BytesView wanted) const {
  // SASI does not index such terms, and a row that the index cannot have found must not match by
  // another way.
  if (term.empty() || term.size() > kSasiTextBytesMax) return false;
  switch (like_) {
    case LikeShape::kWhole:
      return term == wanted;
    case LikeShape::kPrefix:
      return term.starts_with(wanted);
    case LikeShape::kSuffix:
      return term.ends_with(wanted);
    case LikeShape::kPart:
      return term.find(wanted) != Bytes::npos;
  }
  std::unreachable();
}

/// Any term of the value must be like any, or like each, of what is wanted.
bool BoundFilter::matches_sasi_terms(BytesView value) const {
  // No analysis makes less than a quarter of a text.
  const bool has_words = texts_.values.has_words();
  if (has_words ? value.size() > texts_.bytes_max : value.size() / 4 > kSasiTextBytesMax)
    return false;
  const std::vector<Bytes> terms = terms_of(texts_.values, value);
  const auto is_there = [&](BytesView wanted) {
    return std::ranges::any_of(terms, [&](BytesView term) { return is_like(term, wanted); });
  };
  if (!texts_.every_word) return std::ranges::any_of(compared_equal_, is_there);
  return !compared_equal_.empty() && std::ranges::all_of(compared_equal_, is_there);
}

/// As matches(), where an index compares texts otherwise. Such restrictions are equalities, or ask
/// for elements.
bool BoundFilter::matches_texts(BytesView value) const {
  const DataType& type = *restriction_->first().type;
  if (texts_.of_sasi || restriction_->kind == Restriction::Kind::kLike)
    return matches_sasi_terms(value);
  const auto is_same = [&](const DataType& of, const TextAnalysis& analysis, BytesView there,
                           BytesView wanted) {
    if (analysis.does_nothing()) return compare(of, there, wanted) == 0;
    return there.size() <= texts_.bytes_max && analyze(analysis, there) == wanted;
  };
  if (restriction_->kind == Restriction::Kind::kEqual) {
    return is_same(type, texts_.values, value, compared_equal_.front());
  }
  auto reader = CollectionReader::open(type, value);
  if (!reader) return false;
  const bool is_map = type.kind() == TypeKind::kMap;
  // One flag for each condition, in this order; one pass over the collection serves all.
  std::vector<bool> found(compared_contains_.size() + compared_contains_key_.size() +
                          entries_.size());
  while (!reader->at_end()) {
    const auto key = is_map ? reader->next() : Result<OptionalView>(std::nullopt);
    const auto element = reader->next();
    if (!key || !element || !*element || (is_map && !*key)) return false;
    const DataType& element_type = is_map ? *type.value() : *type.element();
    size_t at = 0;
    for (const BytesView wanted : compared_contains_) {
      found[at] = found[at] || is_same(element_type, texts_.values, **element, wanted);
      ++at;
    }
    for (const BytesView wanted : compared_contains_key_) {
      found[at] = found[at] || is_same(*type.key(), texts_.keys, **key, wanted);
      ++at;
    }
    for (const auto& [wanted_key, wanted] : entries_) {
      found[at] = found[at] || (compare(*type.key(), **key, wanted_key) == 0 &&
                                compare(element_type, **element, wanted) == 0);
      ++at;
    }
  }
  return std::ranges::all_of(found, std::identity());
}

// CONTAINS, CONTAINS KEY and m[k] = v, or their negations, on one value that is a collection.
bool BoundFilter::matches_elements(BytesView collection) const {
  const Restriction& restriction = *restriction_;
  const bool excludes = restriction.kind == Restriction::Kind::kNotContains;
  const DataType& type = *restriction.first().type;
  if (type.kind() == TypeKind::kMap) {
    const auto entries = split_map(collection);
    if (!entries) return false;
    const auto has = [&](auto&& test) { return std::ranges::any_of(*entries, test); };
    for (const BytesView wanted : contains_) {
      if (excludes ==
          has([&](const auto& e) { return compare(*type.value(), e.second, wanted) == 0; })) {
        return false;
      }
    }
    for (const BytesView wanted : contains_key_) {
      if (excludes ==
          has([&](const auto& e) { return compare(*type.key(), e.first, wanted) == 0; })) {
        return false;
      }
    }
    for (const auto& [k, v] : entries_) {
      const BytesView key = k, wanted = v;
      if (!has([&](const auto& e) {
            return compare(*type.key(), e.first, key) == 0 &&
                   compare(*type.value(), e.second, wanted) == 0;
          })) {
        return false;
      }
    }
    return true;
  }
  const auto elements = split_list(collection);
  if (!elements) return false;
  return std::ranges::all_of(contains_, [&](BytesView wanted) {
    return excludes != std::ranges::any_of(*elements, [&](BytesView element) {
             return compare(*type.element(), element, wanted) == 0;
           });
  });
}

bool BoundFilter::matches(const RowView& row) const {
  const Restriction& restriction = *restriction_;
  const bool excludes = restriction.kind == Restriction::Kind::kNotContains;
  for (const int32_t slot : slots_) {
    // A collection that is not there has no element.
    if (!row.values[static_cast<size_t>(slot)]) return excludes;
  }
  const auto value = [&](size_t i) { return *row.values[static_cast<size_t>(slots_[i])]; };
  if (!texts_.does_nothing() || restriction.kind == Restriction::Kind::kLike)
    return matches_texts(value(0));
  const auto order = [&](std::span<const BytesView> tuple) {
    for (size_t i = 0; i < tuple.size(); ++i) {
      const int difference = compare(*restriction.columns[i]->type, value(i), tuple[i]);
      if (difference != 0) return difference;
    }
    return 0;
  };
  // A binary search: the tuples were sorted when they were bound.
  const auto is_listed = [&] {
    size_t from = 0, to = tuples_.size();
    while (from < to) {
      const size_t middle = from + (to - from) / 2;
      const int difference = order(tuples_[middle]);
      if (difference == 0) return true;
      (difference > 0 ? from : to) = difference > 0 ? middle + 1 : middle;
    }
    return false;
  };
  switch (restriction.kind) {
    case Restriction::Kind::kEqual:
    case Restriction::Kind::kIn:
      return is_listed();
    case Restriction::Kind::kSlice:
      if (restriction.lower) {
        const int difference = order(lower_);
        if (difference < 0 || (difference == 0 && !restriction.lower->inclusive)) return false;
      }
      if (restriction.upper) {
        const int difference = order(upper_);
        if (difference > 0 || (difference == 0 && !restriction.upper->inclusive)) return false;
      }
      return true;
    case Restriction::Kind::kNotIn:
      return !is_listed();
    case Restriction::Kind::kContains:
    case Restriction::Kind::kNotContains:
    case Restriction::Kind::kLike:
      break;
  }
  return matches_elements(value(0));
}

}  // namespace tetrad::cql

// SPDX-License-Identifier: Apache-2.0
// What an index keeps of a value: components, byte strings whose order is that of the values
// (ordered_encoding.h). index_terms.h has their format, which is on disk.
//
// Terms are made here from cells, keys and whole values (add_*), when stores write and build
// indexes; and from the values of a SELECT (equal, between, ...), as bounds. Both must make the
// same bytes. Long terms are cut and get a hash, so an index may name too many rows and never too
// few: the SELECT's filters test each row.
#include "cql/index/index_terms.h"

#include <algorithm>

#include "base/byte_io.h"
#include "base/hash.h"
#include "cql/execute/map_entry.h"
#include "cql/index/index_options.h"
#include "cql/types/ordered_encoding.h"
#include "partitioner/token.h"

namespace tetrad::cql {

namespace {

// Behind a cut term, so that equality still finds few rows.
constexpr size_t kHashBytes = 8;
constexpr char kGram = '\x40', kBehind = '\xFF';
// Characters of a gram.
constexpr size_t kGramPoints = 3;

/// UTF-8 code point by code point; bytes that begin none go with the one before.
std::vector<BytesView> code_points(BytesView text) {
  std::vector<BytesView> points;
  for (size_t from = 0; from < text.size();) {
    size_t to = from + 1;
    while (to < text.size() && (static_cast<unsigned char>(text[to]) & 0xC0) == 0x80) ++to;
    points.push_back(text.substr(from, to - from));
    from = to;
  }
  return points;
}

/// All components that begin with `prefix`. No text has the byte 0xFF.
void set_beginning(storage::IndexBounds& bounds, Bytes prefix) {
  if (prefix.size() > kTermBytesMax) prefix.resize(kTermBytesMax);
  bounds.lower = prefix;
  bounds.upper = std::move(prefix.append(kHashBytes + 1, '\xFF'));
}

/// Makes `bounds`, which have no end at first, take in the others as well.
void widen(storage::IndexBounds& bounds, storage::IndexBounds other) {
  const bool is_first = !bounds.upper;
  if (is_first || other.lower < bounds.lower) bounds.lower = std::move(other.lower);
  if (is_first || *other.upper > *bounds.upper) bounds.upper = std::move(other.upper);
}

/// Keeps of the term that begins at `start` its first bytes and a hash.
void shorten(Bytes& component, size_t start) {
  const size_t size = component.size() - start;
  if (size <= kTermBytesMax) return;
  const uint64_t hash = base::xxh3_64(BytesView(component).substr(start));
  component.resize(start + kTermBytesMax + kHashBytes);
  base::store_big_endian(component.data() + start + kTermBytesMax, hash);
}

Result<void> append_analyzed(Bytes& component, const DataType& type, BytesView value) {
  const size_t start = component.size();
  TETRAD_TRY_VOID(append_ordered(component, type, value, false));
  shorten(component, start);
  return {};
}

bool fits(IndexTarget target, const DataType& type) {
  switch (target) {
    case IndexTarget::kSimple:
      return !type.is_multi_cell();
    case IndexTarget::kFull:
      return type.is_collection() && type.is_frozen();
    case IndexTarget::kValues:
      return type.is_collection();
    case IndexTarget::kKeys:
    case IndexTarget::kEntries:
      return type.kind() == TypeKind::kMap;
  }
  return false;
}

}  // namespace

bool needs_every_word(const TableSchema& table, const ColumnSchema& column) {
  return table.clustering().empty() || column.kind == ColumnKind::kStatic;
}

// Errors mean that index and column do not fit, which planning refuses; a schema from elsewhere may
// have it.
Result<IndexTerms> IndexTerms::of(const TableSchema& table, const IndexSchema& index) {
  const ColumnSchema* found = nullptr;  // hidden ones too
  for (const ColumnSchema& column : table.columns()) {
    if (column.name == index.column) found = &column;
  }
  if (found == nullptr) {
    return fail(ErrorCode::kInvalid, "Index {} is on the column {}, which {} does not have",
                index.name, index.column, table.qualified_name());
  }
  if (!fits(index.target, *found->type)) {
    return fail(ErrorCode::kInvalid, "Index {} does not fit the type {} of the column {}",
                index.name, found->type->cql_text(), index.column);
  }
  IndexTerms terms;
  terms.index_id_ = index.id;
  terms.target_ = index.target;
  terms.kind_ = found->kind;
  terms.column_id_ = found->id;
  terms.position_ = found->position;
  terms.partition_columns_ = table.partition_key().size();
  terms.type_ = found->type;
  if (index.index_class == IndexClass::kSai) {
    TETRAD_TRY(terms.analysis_, text_analysis(index.options));
    if (!terms.analysis_.does_nothing()) terms.text_bytes_max_ = kIndexedBytesMax;
  } else if (index.index_class == IndexClass::kSasi) {
    TETRAD_TRY(const SasiOptions sasi, sasi_options(*found->type, index.options));
    terms.analysis_ = sasi.analysis;
    terms.has_grams_ = sasi.is_literal && sasi.mode == SasiMode::kContains;
    terms.is_sasi_text_ = sasi.is_literal;
    if (sasi.is_literal) terms.text_bytes_max_ = kSasiTextBytesMax;
    if (const auto bytes = sasi_words_bytes_max(sasi)) terms.words_bytes_max_ = *bytes;
    terms.needs_every_word_ = needs_every_word(table, *found);
  }
  if (found->kind == ColumnKind::kClustering) {
    for (const ColumnSchema& column : table.clustering().first(found->position + 1)) {
      terms.clustering_.push_back(column.type);
      terms.descending_.push_back(column.descending);
    }
  }
  return terms;
}

Result<void> IndexTerms::append_term(Bytes& component, const DataType& type,
                                     BytesView value) const {
  if (analysis_.does_nothing()) return append_analyzed(component, type, value);
  return append_analyzed(component, type, analyze(analysis_, value));
}

Result<void> IndexTerms::add_path(const DataType& type, BytesView path,
                                  std::vector<Bytes>& components) const {
  if (!analysis_.does_nothing()) {
    TETRAD_TRY(const OptionalBytes value, decode_ordered(path, type, false));
    return add_term(type, value.value_or(Bytes()), components);
  }
  Bytes component(path);
  shorten(component, 0);
  components.push_back(std::move(component));
  return {};
}

const DataType& IndexTerms::term_type() const {
  switch (target_) {
    case IndexTarget::kSimple:
    case IndexTarget::kFull:
      return *type_;
    case IndexTarget::kKeys:
      return *type_->key();
    case IndexTarget::kValues:
    case IndexTarget::kEntries:
      return type_->kind() == TypeKind::kMap ? *type_->value() : *type_->element();
  }
  return *type_;
}

Result<void> IndexTerms::add_term(const DataType& type, BytesView value,
                                  std::vector<Bytes>& components) const {
  if (is_sasi_text_) return add_sasi_terms(type, value, components);
  if (value.size() > text_bytes_max_) return {};
  Bytes component;
  TETRAD_TRY_VOID(append_term(component, type, value));
  components.push_back(std::move(component));
  return {};
}

Result<void> IndexTerms::add_sasi_terms(const DataType& type, BytesView text,
                                        std::vector<Bytes>& components) const {
  // SASI limits the analysed term, SAI the value. No analysis makes less than a quarter of a text, so
  // what is larger needs none.
  const bool has_words = analysis_.has_words();
  if (has_words ? text.size() > words_bytes_max_ : text.size() / 4 > text_bytes_max_) return {};
  for (const Bytes& term : terms_of(analysis_, text)) {
    if (term.empty() || term.size() > text_bytes_max_) continue;
    Bytes component;
    TETRAD_TRY_VOID(append_analyzed(component, type, term));
    components.push_back(std::move(component));
    if (has_grams_) add_grams(term, components);
  }
  if (!has_words) return {};
  // The words of a text repeat themselves.
  std::ranges::sort(components);
  const auto repeated = std::ranges::unique(components);
  components.erase(repeated.begin(), repeated.end());
  return {};
}

// Where a row must have every word, one of them finds it: the longest, which most likely is in the fewest rows.
std::vector<Bytes> IndexTerms::looked_for(BytesView text) const {
  std::vector<Bytes> terms = terms_of(analysis_, text);
  if (!needs_every_word_ || terms.size() < 2) return terms;
  return {*std::ranges::max_element(terms, {}, &Bytes::size)};
}

void IndexTerms::add_grams(BytesView text, std::vector<Bytes>& components) const {
  const std::vector<BytesView> points = code_points(text);
  for (size_t i = 0; i < points.size(); ++i) {
    Bytes gram(1, kGram);
    for (size_t n = i; n < i + kGramPoints; ++n) {
      if (n < points.size())
        gram.append(points[n]);
      else
        gram += kBehind;
    }
    components.push_back(std::move(gram));
  }
}

Result<void> IndexTerms::add_value(BytesView value, std::vector<Bytes>& components) const {
  if (target_ == IndexTarget::kSimple || target_ == IndexTarget::kFull) {
    return add_term(*type_, value, components);
  }
  if (type_->kind() != TypeKind::kMap) {
    TETRAD_TRY(const std::vector<BytesView> elements, split_list(value));
    for (const BytesView element : elements) {
      TETRAD_TRY_VOID(add_term(*type_->element(), element, components));
    }
    return {};
  }
  TETRAD_TRY(const auto entries, split_map(value));
  for (const auto& [key, entry] : entries) {
    if (target_ == IndexTarget::kEntries) {
      Bytes component;
      TETRAD_TRY_VOID(append_term(component, *type_->key(), key));
      TETRAD_TRY_VOID(append_term(component, *type_->value(), entry));
      components.push_back(std::move(component));
    } else {
      const bool of_keys = target_ == IndexTarget::kKeys;
      TETRAD_TRY_VOID(add_term(term_type(), of_keys ? key : entry, components));
    }
  }
  return {};
}

Result<void> IndexTerms::add_cell(const storage::Cell& cell, std::vector<Bytes>& components) const {
  return cell.has_path ? add_element(cell, components) : add_value(cell.value, components);
}

Result<void> IndexTerms::add_element(const storage::Cell& cell,
                                     std::vector<Bytes>& components) const {
  // Paths of sets and maps are what append_ordered() makes of element and key, ascending.
  if (type_->kind() == TypeKind::kList) return add_term(*type_->element(), cell.value, components);
  if (type_->kind() == TypeKind::kSet) return add_path(*type_->element(), cell.path, components);
  if (type_->kind() != TypeKind::kMap) {
    return fail(ErrorCode::kCorruption, "a cell with a path in a column of the type {}",
                type_->cql_text());
  }
  if (target_ == IndexTarget::kKeys) return add_path(*type_->key(), cell.path, components);
  BytesView value = cell.value;
  if (has_entry_mark(*type_->key())) {
    TETRAD_TRY(const MapEntry entry, decode_map_entry(cell.value));
    value = entry.value;
  }
  if (target_ == IndexTarget::kValues) return add_term(*type_->value(), value, components);
  Bytes component(cell.path);
  shorten(component, 0);
  TETRAD_TRY_VOID(append_term(component, *type_->value(), value));
  components.push_back(std::move(component));
  return {};
}

Result<void> IndexTerms::add_partition_key(BytesView partition_key,
                                           std::vector<Bytes>& components) const {
  TETRAD_TRY(const std::vector<BytesView> values,
             partitioner::split_partition_key(partition_key, partition_columns_));
  return add_value(values[position_], components);
}

Result<void> IndexTerms::add_clustering_key(BytesView clustering_key,
                                            std::vector<Bytes>& components) const {
  TETRAD_TRY(const OptionalBytes value, clustering_value(clustering_key));
  if (!value) return {};
  return add_value(*value, components);
}

Result<OptionalBytes> IndexTerms::clustering_value(BytesView clustering_key) const {
  for (size_t i = 0; i < clustering_.size() && !clustering_key.empty(); ++i) {
    if (i + 1 == clustering_.size())
      return decode_ordered(clustering_key, *clustering_[i], descending_[i]);
    TETRAD_TRY([[maybe_unused]] const BytesView skipped,
               skip_ordered(clustering_key, *clustering_[i], descending_[i]));
  }
  return OptionalBytes();
}

Result<storage::IndexBounds> IndexTerms::equal(BytesView value) const {
  storage::IndexBounds bounds;
  bounds.index_id = index_id_;
  for (const Bytes& term : looked_for(value)) {
    Bytes component;
    TETRAD_TRY_VOID(append_analyzed(component, term_type(), term));
    widen(bounds, {.lower = component, .upper = component});
  }
  return bounds;
}

Result<storage::IndexBounds> IndexTerms::entry(BytesView key, BytesView value) const {
  storage::IndexBounds bounds;
  bounds.index_id = index_id_;
  TETRAD_TRY_VOID(append_term(bounds.lower, *type_->key(), key));
  TETRAD_TRY_VOID(append_term(bounds.lower, *type_->value(), value));
  bounds.upper = bounds.lower;
  return bounds;
}

Result<storage::IndexBounds> IndexTerms::beginning(BytesView text) const {
  storage::IndexBounds bounds;
  bounds.index_id = index_id_;
  for (const Bytes& term : looked_for(text)) {
    Bytes encoded;
    TETRAD_TRY_VOID(append_ordered(encoded, *type_, term, false));
    constexpr size_t kEndBytes = 2;  // of a text (ordered_encoding.h)
    encoded.resize(encoded.size() - kEndBytes);
    storage::IndexBounds of_word;
    set_beginning(of_word, std::move(encoded));
    widen(bounds, std::move(of_word));
  }
  return bounds;
}

Result<storage::IndexBounds> IndexTerms::ending(BytesView text) const {
  storage::IndexBounds bounds;
  bounds.index_id = index_id_;
  for (const Bytes& term : looked_for(text)) {
    const std::vector<BytesView> points = code_points(term);
    const size_t count = std::min(points.size(), kGramPoints - 1);
    Bytes gram(1, kGram);
    for (size_t i = points.size() - count; i < points.size(); ++i) gram.append(points[i]);
    gram.append(kGramPoints - count, kBehind);
    widen(bounds, {.lower = gram, .upper = gram});
  }
  return bounds;
}

Result<storage::IndexBounds> IndexTerms::having(BytesView text) const {
  storage::IndexBounds bounds;
  bounds.index_id = index_id_;
  for (const Bytes& term : looked_for(text)) {
    const std::vector<BytesView> points = code_points(term);
    Bytes gram(1, kGram);
    for (size_t i = 0; i < std::min(points.size(), kGramPoints); ++i) gram.append(points[i]);
    storage::IndexBounds of_term;
    set_beginning(of_term, std::move(gram));
    widen(bounds, std::move(of_term));
  }
  return bounds;
}

Result<storage::IndexBounds> IndexTerms::between(OptionalView lower, OptionalView upper) const {
  storage::IndexBounds bounds;
  bounds.index_id = index_id_;
  // Behind the bytes that are kept stands a hash, which has no order.
  if (lower) {
    TETRAD_TRY_VOID(append_ordered(bounds.lower, term_type(), *lower, false));
    if (bounds.lower.size() > kTermBytesMax) bounds.lower.resize(kTermBytesMax);
  }
  if (upper) {
    bounds.upper.emplace();
    TETRAD_TRY_VOID(append_ordered(*bounds.upper, term_type(), *upper, false));
    if (bounds.upper->size() > kTermBytesMax) {
      bounds.upper->resize(kTermBytesMax);
      bounds.upper->append(kHashBytes, '\xFF');
    }
  }
  return bounds;
}

Result<std::vector<Bytes>> index_components(const TableSchema& table, const IndexSchema& index,
                                            BytesView value) {
  TETRAD_TRY(const IndexTerms terms, IndexTerms::of(table, index));
  std::vector<Bytes> components;
  TETRAD_TRY_VOID(terms.add_value(value, components));
  return components;
}

}  // namespace tetrad::cql

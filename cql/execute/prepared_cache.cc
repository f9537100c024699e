// SPDX-License-Identifier: Apache-2.0
// Statements of a request processor: made of texts, kept under their ids as long as there is room for
// them, and made again when the schema has changed.
#include "base/hash.h"
#include "cql/execute/password.h"
#include "cql/execute/query_processor.h"
#include "cql/grammar/parser.h"

namespace tetrad::cql {
namespace {

/// Large texts are parsed one after another: what a text is parsed to may be much larger than it.
constexpr uint32_t kParseLane = 0x50415253;

constexpr size_t kTracedBytesMax = 10'000;  // of a text, in a trace
// Of the texts of a list: of one, and of all. They are searched for passwords and copied on the loop,
// and each shard keeps the last list that it was asked for.
constexpr size_t kListedTextMax = 16u << 10;
constexpr uint64_t kListedBytesMax = 2u << 20;

/// Equal on all nodes: drivers refuse another id when they prepare again.
Bytes statement_id(const std::string& keyspace, BytesView text) {
  Bytes input = keyspace;
  input.push_back('\0');
  input.append(text);
  const auto digest = base::sha256(input);
  return Bytes(reinterpret_cast<const char*>(digest.data()), 16);
}

}  // namespace

/// Expressions of its tokens, and each marker has a specification as well.
/// 200,000 literals of IN, 400,000 tokens, were measured to take 26 MB.
uint64_t QueryProcessor::plan_bytes(const Statement& statement) {
  return 2048 + 80 * statement.token_count() + 384 * statement.bind_variables().size();
}

std::unexpected<Error> QueryProcessor::fail_unprepared(BytesView id) {
  return std::unexpected(
      Error(ErrorCode::kUnprepared,
            fmt::format("Prepared query with ID {} not found (either the query was not prepared on "
                        "this host (maybe the host has been restarted?) or you have prepared too "
                        "many queries and it has been evicted from the internal cache)",
                        base::to_hex(id)),
            base::UnpreparedDetail{std::string(id)}));
}

std::string QueryProcessor::keyspace_of(const std::optional<BytesView>& named,
                                        const ClientState& client) {
  return named ? std::string(*named) : client.keyspace;
}

void QueryProcessor::trace_parsing(const Notes& notes, BytesView text) {
  if (notes.trace == nullptr) return;
  notes.trace->add(fmt::format("Parsing {}", up_to_secret(text.substr(0, kTracedBytesMax))));
}

Result<StatementPtr> QueryProcessor::prepare_text(BytesView text, const std::string& keyspace,
                                                  const SchemaPtr& schema,
                                                  StatementSubject& refused) const {
  TETRAD_TRY(const ParsedStatement parsed, parse_with_markers(text));
  const PrepareContext context{schema, keyspace, options_.settings, parsed.marker_names,
                               parsed.token_count};
  Result<StatementPtr> prepared = prepare_statement(parsed.statement, context);
  if (!prepared) refused = subject_of(parsed.statement, keyspace);
  return prepared;
}

Task<Result<StatementPtr>> QueryProcessor::prepare(BytesView text, const std::string& keyspace,
                                                   RequestAudit* audit) {
  Result<StatementPtr> prepared = StatementPtr();
  StatementSubject refused;
  if (!is_large(text)) {
    prepared = prepare_text(text, keyspace, schema_, refused);
  } else {
    const SchemaPtr schema = schema_;
    const std::function<void()> read_text = [&] {
      prepared = prepare_text(text, keyspace, schema, refused);
    };
    co_await off_loop_.run(kParseLane, read_text);
    if (prepared) prepared = off_loop_.freed_off_loop(kParseLane, std::move(*prepared));
  }
  if (!prepared && audit != nullptr) audit->note_refused(std::move(refused));
  co_return prepared;
}

QueryProcessor::Prepared& QueryProcessor::remember(Bytes id, std::string keyspace, BytesView text,
                                                   StatementPtr statement) {
  auto& slot = prepared_[id];
  if (slot == nullptr) {
    slot = std::make_unique<Prepared>();
    slot->id = std::move(id);
    slot->keyspace = std::move(keyspace);
    slot->text = std::string(text);
    by_use_.push_front(slot.get());
    slot->used = by_use_.begin();
  } else {
    by_use_.splice(by_use_.begin(), by_use_, slot->used);
  }
  Prepared& entry = *slot;
  entry.statement = std::move(statement);
  entry.markers = metadata_id_of(wire_columns(entry.statement->bind_variables()));
  entry.checked_at = schema_->version();
  prepared_bytes_ -= entry.bytes;
  entry.bytes = entry.text.size() + plan_bytes(*entry.statement);
  prepared_bytes_ += entry.bytes;
  while (by_use_.size() > 1 && (by_use_.size() > options_.prepared_statements_max ||
                                prepared_bytes_ > options_.prepared_bytes_max)) {
    metrics_.prepared_evicted.add();
    forget(*by_use_.back());
  }
  return entry;
}

void QueryProcessor::forget(Prepared& prepared) {
  prepared_bytes_ -= prepared.bytes;
  by_use_.erase(prepared.used);
  const Bytes id = prepared.id;  // the map's key dies with the entry
  prepared_.erase(id);
}

QueryProcessor::Prepared* QueryProcessor::find_current(BytesView id) {
  const auto found = prepared_.find(Bytes(id));
  if (found == prepared_.end()) return nullptr;
  Prepared& entry = *found->second;
  if (entry.checked_at != schema_->version()) {
    if (!entry.statement->is_current(*schema_)) return nullptr;
    entry.checked_at = schema_->version();
    hear_of_others(entry);
  }
  if (entry.used != by_use_.begin()) by_use_.splice(by_use_.begin(), by_use_, entry.used);
  return &entry;
}

Task<Result<QueryProcessor::Prepared*>> QueryProcessor::find_again(BytesView id) {
  // What is kept may be dropped meanwhile.
  PreparedTexts::Entry known;
  bool is_known = false;
  if (const auto found = prepared_.find(Bytes(id)); found != prepared_.end()) {
    Prepared& entry = *found->second;
    hear_of_others(entry);
    known = {entry.keyspace, entry.text, entry.announced};
    is_known = true;
  } else if (options_.prepared_texts != nullptr) {
    if (auto of_others = options_.prepared_texts->find(id)) {
      known = std::move(*of_others);
      is_known = true;
    }
  }
  if (is_known) {
    auto again = co_await prepare(known.text, known.keyspace);
    if (again) {
      Prepared& entry = remember(Bytes(id), known.keyspace, known.text, std::move(*again));
      entry.announced = known.announced;
      co_return &entry;
    }
    // The driver prepares again and gets the reason.
    if (const auto found = prepared_.find(Bytes(id)); found != prepared_.end())
      forget(*found->second);
  }
  metrics_.unprepared.add();
  co_return fail_unprepared(id);
}

bool QueryProcessor::is_announced(Prepared& prepared) {
  const ResultMetadataPtr& metadata = prepared.statement->result_metadata();
  const auto is_it = [&] {
    return prepared.announced.markers == prepared.markers &&
           (metadata == nullptr || prepared.announced.result == metadata->encoded.id());
  };
  if (is_it()) return true;
  hear_of_others(prepared);
  return is_it();
}

// It may have been prepared again on another shard.
void QueryProcessor::hear_of_others(Prepared& prepared) {
  if (options_.prepared_texts == nullptr) return;
  if (const auto of_node = options_.prepared_texts->find(prepared.id))
    prepared.announced = of_node->announced;
}

void QueryProcessor::announce(Prepared& prepared) {
  constexpr MetadataId kNever{};
  hear_of_others(prepared);
  const ResultMetadataPtr& metadata = prepared.statement->result_metadata();
  const MetadataId result = metadata == nullptr ? kNever : metadata->encoded.id(),
                   before = prepared.announced.result;
  const bool varied = prepared.announced.varied || (before != kNever && before != result);
  prepared.announced = {result, prepared.markers, varied};
  if (options_.prepared_texts != nullptr)
    options_.prepared_texts->put(prepared.id,
                                 {prepared.keyspace, prepared.text, prepared.announced});
}

std::vector<ListedStatement> QueryProcessor::prepared(size_t count_max) const {
  std::vector<ListedStatement> out;
  uint64_t bytes = 0;
  // False: the list is full, and no other text is looked at.
  const auto add = [&](const Bytes& id, const std::string& keyspace, const std::string& text) {
    if (out.size() == count_max) return false;
    const BytesView shown = up_to_secret(BytesView(text).substr(0, kListedTextMax));
    bytes += shown.size();
    if (bytes > kListedBytesMax) return false;
    out.push_back({id, keyspace, std::string(shown)});
    return true;
  };
  if (options_.prepared_texts == nullptr) {
    for (const Prepared* kept : by_use_)
      if (!add(kept->id, kept->keyspace, kept->text)) break;
  } else {
    for (const auto& [id, entry] : options_.prepared_texts->list(count_max))
      if (!add(id, entry->keyspace, entry->text)) break;
  }
  return out;
}

Task<Result<QueryProcessor::Answer>> QueryProcessor::answer_prepare(const PrepareRequest& request,
                                                                    ClientState& client,
                                                                    Notes& notes) {
  const std::string keyspace = keyspace_of(request.keyspace, client);
  watch({}, request.text);
  trace_parsing(notes, request.text);
  auto prepared = co_await prepare(request.text, keyspace, notes.audit);
  TETRAD_CO_TRY(StatementPtr statement, std::move(prepared));
  notes.audit->add(*statement, request.text);
  if (notes.trace != nullptr) notes.trace->add("Statement prepared");
  notes.warnings = statement->warnings();
  if (const size_t markers = statement->bind_variables().size(); markers > ast::kBindMarkersMax) {
    co_return fail(ErrorCode::kInvalid,
                   "Too many markers(?). {} markers exceed the allowed maximum of {}", markers,
                   ast::kBindMarkersMax);
  }
  Answer answer;
  if (const uint64_t bytes = request.text.size() + plan_bytes(*statement);
      bytes > options_.prepared_bytes_max) {
    // As Cassandra: it would push all others out.
    co_return fail(ErrorCode::kInvalid,
                   "Prepared statement of size {} bytes is larger than allowed maximum of {} MB: "
                   "{}...",
                   bytes, options_.prepared_bytes_max >> 20, request.text.substr(0, 200));
  }
  const std::function<void()> make_id = [&] {
    answer.prepared_id = statement_id(keyspace, request.text);
  };
  if (is_large(request.text)) {
    co_await off_loop_.run(kParseLane, make_id);
  } else {
    make_id();
  }
  announce(remember(answer.prepared_id, keyspace, request.text, statement));
  answer.prepared = std::move(statement);
  co_return answer;
}

}  // namespace tetrad::cql

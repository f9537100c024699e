// SPDX-License-Identifier: Apache-2.0
// The recursive-descent parser behind parser.h. Its families of statements live in parse_*.cc.
//
// Errors are sticky: the first one is kept, from then on the current token is the end of the text
// and nothing is accepted any more, so every rule runs out by itself. Loops therefore go on only
// after something was accepted.
//
// In the comments below | separates alternatives, [x] is optional, x* any number of x. Names of the
// tree's types are in ast_*.h. Each rule begins at the current token, leaves the first token behind
// it, and returns a value that means nothing after a failure.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cql/grammar/ast.h"
#include "cql/grammar/lexer.h"
#include "cql/grammar/parser.h"
#include "cql/grammar/token.h"

namespace tetrad::cql {

/// Reads one text with one whole_ function, then ends: made, used and dropped by the functions of
/// parser.h. Holds a view of the text. Invariants: index_ is below tokens_.size(), whose last token
/// is kEnd or kError; error_ is set exactly if failed_; after a failure nothing is accepted.
class Parser {
 public:
  Parser(std::string_view text, const ParseLimits& limits);

  /// One statement, `;` and the end.
  ast::Statement whole_statement();
  /// One type, and the end.
  ast::CqlType whole_type();
  /// One term, and the end.
  ast::Term whole_term();
  /// What stands behind WHERE in the text of a view, and the end.
  std::vector<ast::Relation> whole_where();

  bool failed() const { return failed_; }
  /// Cassandra's text, of a syntax error with line and column; only after a failure.
  Error take_error() { return Error(error_code_, std::move(error_)); }
  size_t token_count() const { return tokens_.size(); }
  /// One for each marker in the order of the text; unset for `?`.
  std::vector<std::optional<std::string>> take_marker_names() { return std::move(marker_names_); }

 private:
  // One level of nesting; fails when there are too many.
  class Level {
   public:
    explicit Level(Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > parser_.limits_.depth_max) parser_.fail_too_deep();
    }
    ~Level() { --parser_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Parser& parser_;
  };

  // -- tokens (parser_core.cc)
  /// Reads all tokens but hidden ones, up to the end, the first error or the limit.
  void tokenize();
  /// The token `ahead` places on, the last one beyond the end. Notes it as looked at, which error
  /// texts show: use tokens_ directly where Cassandra does not look.
  const Token& peek(size_t ahead = 0) {
    const size_t index = std::min(index_ + ahead, tokens_.size() - 1);
    if (index > seen_) seen_ = index;
    return tokens_[index];
  }
  /// Look only; nothing is consumed.
  bool is(TokenKind kind, size_t ahead = 0) { return peek(ahead).kind == kind; }
  bool is(Keyword keyword, size_t ahead = 0) { return peek(ahead).keyword == keyword; }
  bool is_any(std::initializer_list<Keyword> keywords, size_t ahead = 0);
  bool is_any(std::initializer_list<TokenKind> kinds, size_t ahead = 0);
  /// Consumes the current token; stays at the last one.
  void advance() {
    if (index_ + 1 < tokens_.size()) ++index_;
    if (index_ > seen_) seen_ = index_;
  }
  /// Consumes the token if it is `what`. False after a failure, so loops over accept() end.
  template <class What>
  bool accept(What what) {
    if (!is(what)) return false;
    advance();
    return !failed_;
  }
  bool accept(Keyword first, Keyword second);  // both or none
  /// accept(), or an error that names what was expected.
  bool expect(TokenKind kind);
  bool expect(Keyword keyword);
  /// The token as it was written; value(): what it means.
  std::string_view raw(const Token& token) const {
    return text_.substr(token.offset, token.length);
  }
  std::string value(const Token& token) const { return token_value(text_, token); }
  static ast::Position position_of(const Token& token) { return {token.line, token.column}; }
  ast::Position here() { return position_of(peek()); }

  // -- errors (parser_core.cc)
  /// Keeps the first error, with a whole text; later ones change nothing.
  void fail(std::string message);
  /// The same for what is no mistake of grammar.
  void fail_invalid(std::string message);
  /// "line L:C no viable alternative at input …": the token at `at` fits nothing that began at
  /// `from`.
  void fail_no_viable(size_t at, size_t from);
  void fail_no_viable() { fail_no_viable(index_, index_); }
  /// "line L:C mismatched input ... expecting ...": one token could stand there, and another does.
  void fail_mismatch(size_t at, std::string_view expected);
  /// "line L:C what", unless the lexer met an unreadable character before.
  void fail_at(size_t at, std::string_view what);
  void fail_too_deep();
  std::string token_display(const Token& token) const;
  /// " (...words[word]words...)" around the token at `from`, as Cassandra adds it.
  std::string snippet(size_t from) const;
  /// "line L:C"; "line 0:-1" for the end of the text.
  std::string place(size_t at) const;
  /// Fails when a list has more elements than ParseLimits allow.
  void check_count(size_t count);
  /// Height of the term or selector just made.
  void set_height(int32_t height);

  // -- names (parse_names.cc)
  static bool names(const Token& token);           // any unreserved name
  static bool names_function(const Token& token);  // without a keyspace
  static bool names_type(const Token& token);
  ast::Identifier take_identifier();  // the current token, whatever it is
  /// name := identifier | "quoted" | unreserved keyword. Unquoted ones are in lower case.
  ast::Identifier name();
  ast::Identifier keyspace_name();
  /// [name .] name; `what` stands in the error.
  ast::QualifiedName qualified_name(std::string_view what);
  ast::QualifiedName table_name() { return qualified_name("table"); }
  /// [name .] name, where keywords of native types may be names, too.
  ast::FunctionName function_name();
  /// Whether a function's name and '(' follow.
  bool starts_function_call(size_t ahead = 0);
  /// 'text' or $$text$$, without its quotes.
  std::string string_literal();
  /// ( name, name ... ), at least one.
  std::vector<ast::Identifier> names_in_parentheses();
  /// [IF EXISTS]; whether it was written.
  bool if_exists();
  bool if_not_exists();

  // -- what terms and selectors have alike; `read` reads one (parse_collections.h)
  template <class Read>
  auto items_until(TokenKind close, Read read);  // a, b … and the closing token
  template <class Set, class Map, class Node, class Read>
  Node set_or_map(Node first, ast::Position position, Read read);

  // -- types (parse_types.cc)
  /// type := frozen< type > | native | collection | [keyspace .] user type | 'class'
  ast::CqlType type();
  ast::CqlType unmarked_type();
  ast::CqlType collection_type(ast::CqlType result);
  int32_t vector_dimension();
  ast::CqlType native_type();
  /// [keyspace .] name, which must not be one of Cassandra's reserved names.
  ast::CqlType user_type();
  /// ( [type, type ...] )
  std::vector<ast::CqlType> types_in_parentheses();
  size_t skip_type(size_t index, int32_t depth = 0) const;  // behind the type at `index`, or 0

  // -- terms (parse_terms.cc)
  /// term := product (('+' | '-') product)*. before_column: stops before `+ name`.
  ast::Term term(bool before_column = false);
  /// product := factor (('*' | '/' | '%') factor)*
  ast::Term product();
  /// factor := ['-'] simple_term
  ast::Term factor();
  /// simple_term := literal | marker | [ ... ] | { ... } | ( ... ) | function call | CAST
  ast::Term simple_term();
  ast::Term brace_term();
  ast::Term parenthesis_term();
  ast::Term function_term();
  ast::Term cast_term();
  ast::Term bind_marker();
  /// integer | marker
  ast::Term integer_or_marker();
  /// Whether it is this word, in lower case here: one that means something although Cassandra has
  /// no such keyword. Not noted as looked at: that shows in errors.
  bool is_word(std::string_view word, size_t ahead = 0) const;
  bool is_timeout(size_t ahead = 0) const { return is_word("timeout", ahead); }
  /// TIMEOUT (duration | marker); is_timeout() holds.
  ast::Term timeout();
  /// The token as a literal; unset if it is none. Consumes nothing.
  std::optional<ast::Literal> literal_of(const Token& token) const;
  /// Fails for a float that Java could not read.
  void check_range(std::string_view number);
  std::optional<ast::Literal> accept_literal();
  /// Whether a term can begin with the token at `index`; notes nothing as looked at.
  bool starts_term(size_t index) const;
  bool is_bind_marker(size_t ahead = 0) {
    return is(TokenKind::kQuestionMark, ahead) || is(TokenKind::kColon, ahead);
  }
  /// Fails for a token that follows no term in any rule of Cassandra's.
  void check_term_end();
  /// [term, term ...] close
  std::vector<ast::Term> terms_until(TokenKind close);

  // -- selectors (parse_selectors.cc)
  std::vector<ast::SelectItem> select_items();  // none: *
  /// selector := selector_product (('+' | '-') selector_product)*, as terms.
  ast::Selector selector();
  ast::Selector selector_product();
  /// '-'* selector_with_modifiers
  ast::Selector selector_factor();
  /// simple_selector (. field | [key] | [a..b])*
  ast::Selector selector_with_modifiers();
  ast::Selector simple_selector();
  ast::Selector selector_modifiers(ast::Selector source);
  ast::Selector bracket_modifier(ast::Selector source);
  /// (WRITETIME | MAXWRITETIME | TTL) ( column with modifiers )
  ast::Selector write_time_selector();
  ast::Selector cast_selector();
  ast::Selector function_selector();
  ast::Selector parenthesis_selector();
  ast::Selector brace_selector();
  std::vector<ast::Selector> selectors_until(TokenKind close);
  // Both look only, and note nothing as looked at.
  bool starts_selector(size_t index) const;
  bool is_alias(size_t index) const;

  // -- WHERE and IF (parse_relations.cc)
  /// relation (AND relation)*
  std::vector<ast::Relation> where_clause();
  /// A column, an element, a tuple, token(), expr() or the change feed, compared; or in
  /// parentheses.
  ast::Relation relation();
  void tuple_relation(ast::Relation& relation);
  void compared_term(ast::Relation& relation);
  void token_relation(ast::Relation& relation);
  void change_feed_relation(ast::Relation& relation);
  /// name (comparison term | IS NOT NULL | LIKE term | [NOT] IN values | [NOT] CONTAINS [KEY] term
  /// | BETWEEN term AND term) | name [term] comparison term
  void column_relation(ast::Relation& relation);
  std::optional<ast::RelationOperator> accept_comparison();
  bool accept_between(ast::Relation& relation);
  void in_values(bool& in_marker, std::vector<ast::Term>& values);
  /// EXISTS | condition (AND condition)*
  void condition_clause(bool& if_exists, std::vector<ast::Condition>& conditions);
  ast::Condition condition();

  // -- statements
  ast::Statement statement();  // parse_statement.cc
  ast::Statement create_statement();
  ast::Statement alter_statement();
  ast::Statement drop_statement();
  ast::Select select();  // parse_select.cc
  // name [ANN OF term] [ASC | DESC]
  ast::Ordering ordering();
  ast::Modification insert();  // parse_modify.cc
  ast::Update update();
  ast::Delete delete_statement();
  /// column (= value | += value | -= value | [key] = value | .field = value)
  ast::Assignment assignment();
  void assignment_value(ast::Assignment& assignment);
  void check_assignments(const std::vector<ast::Assignment>& assignments);
  /// [USING (TIMESTAMP t | TTL t | TIMEOUT d) (AND ...)*]
  ast::Attributes attributes();
  // BEGIN [UNLOGGED | COUNTER] BATCH attributes (modification [;])* APPLY BATCH
  ast::Batch batch();
  // TRUNCATE [TABLE | COLUMNFAMILY] table
  ast::Truncate truncate();
  ast::Use use();

  ast::CreateKeyspace create_keyspace();  // parse_schema.cc; each from behind its introducing words
  ast::AlterKeyspace alter_keyspace();
  ast::CreateTable create_table();
  /// A column, or PRIMARY KEY (...).
  void table_column(ast::CreateTable& table);
  /// name type [STATIC] [MASKED WITH ...]
  ast::ColumnDefinition column_definition();
  ast::ColumnMask column_mask();
  ast::PrimaryKey primary_key();
  ast::AlterTable alter_table();
  void alter_column(ast::AlterTable& alter);
  void add_columns(ast::AlterTable& alter);
  void drop_columns(ast::AlterTable& alter);
  // RENAME [IF EXISTS] is read; name TO name (AND name TO name)*
  std::vector<std::pair<ast::Identifier, ast::Identifier>> renames();
  // option (AND option)*, behind WITH.
  ast::TableOptions table_options();
  void table_option(ast::TableOptions& options);
  ast::Properties properties();
  /// name = (constant | keyword | map); fails when the name was there.
  void property(ast::Properties& properties);
  ast::PropertyValue::Map property_map();
  // [IF NOT EXISTS] name ( field type, ... )
  ast::CreateType create_type();
  // [IF EXISTS] name (ADD field type | RENAME renames | ALTER field TYPE type)
  ast::AlterType alter_type();

  // [IF NOT EXISTS] [name] ON table ( targets ) [USING 'class'] [WITH properties]
  ast::CreateIndex create_index(bool custom);  // parse_schema_objects.cc
  // name | (KEYS | VALUES | ENTRIES | FULL) ( name )
  ast::IndexTarget index_target();
  ast::CreateView create_view();
  ast::AlterView alter_view();
  ast::CreateFunction create_function(bool or_replace);
  ast::CreateAggregate create_aggregate(bool or_replace);
  template <class Drop>
  Drop drop_function();
  ast::CreateTrigger create_trigger();
  ast::DropTrigger drop_trigger();

  ast::RoleName role_name();  // parse_auth.cc
  ast::RoleName user_name();
  ast::CreateRole create_role();
  ast::CreateRole create_user();
  ast::AlterRole alter_role();
  ast::AlterRole alter_user();
  // role_option (AND role_option)*, behind WITH.
  void role_options(ast::RoleOptions& options);
  void role_option(ast::RoleOptions& options);
  void user_options(ast::RoleOptions& options);
  // { 'text', 'text' ... }
  std::vector<std::string> strings_in_braces();
  ast::Statement grant();
  ast::Statement revoke();
  ast::Statement list();
  // Unset: no permission's word is there. Consumes nothing.
  std::optional<ast::Permission> permission_at(size_t ahead = 0);
  void permissions(bool& all, std::vector<ast::Permission>& permissions);
  // ALL KEYSPACES | KEYSPACE name | [TABLE] table | ALL ROLES | ROLE name | ALL FUNCTIONS [IN
  // KEYSPACE name] | FUNCTION name ( types ) | ALL MBEANS | MBEAN name | MBEANS pattern | ALL
  // TABLES IN KEYSPACE name
  ast::Resource resource();
  ast::AddIdentity add_identity();
  std::string identity();
  ast::Describe describe();
  // What stands behind DESCRIBE when it is one object; `from` is the index of DESCRIBE, for errors.
  void described_object(ast::Describe& result, size_t from);
  void named_object(ast::Describe& result, ast::Describe::Target target);

  std::string_view text_;
  const ParseLimits limits_;
  std::vector<Token> tokens_;  // the last one is kEnd or kError
  size_t index_ = 0;           // of the current token
  size_t seen_ = 0;            // highest index looked at
  // Cassandra's parser takes a second look at what follows a literal: an error there is worded in
  // another way.
  size_t behind_literal_ = 0;  // index behind the last literal read
  // Of the rule that is being read (Level), and of the tree that was read last: both are bounded by
  // depth_max, the second since a chain a + b + c … is deep without any nesting in the text.
  int32_t depth_ = 0;
  int32_t height_ = 0;
  bool failed_ = false;
  ErrorCode error_code_ = ErrorCode::kSyntax;
  std::string error_;
  // Of the last token, when it is kError. It becomes the parser's error only when the parser gets
  // there: an earlier mistake in the grammar is reported instead.
  std::string lexer_error_;
  std::vector<std::optional<std::string>> marker_names_;
  ast::Position start_;  // of the statement now read
};

}  // namespace tetrad::cql

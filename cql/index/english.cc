// SPDX-License-Identifier: Apache-2.0
// A word is kept as UTF-16, because Snowball counts the characters of Java.
//
// Names of the algorithm's description: R1 is what follows the first consonant behind a vowel, R2 the
// same within R1. Each step looks at the longest ending of its list only.
#include "cql/index/english.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>

#include "cql/index/code_points.h"

namespace tetrad::cql {

namespace {

using namespace std::string_view_literals;

constexpr std::string_view kStopWords =
    "a a's able about above according accordingly across actually after afterwards again "
    "against ain't all allow allows almost alone along already also although always am "
    "among amongst an and another any anybody anyhow anyone anything anyway anyways "
    "anywhere apart appear appreciate appropriate are aren't around as aside ask asking "
    "associated at available away awfully b be became because become becomes becoming been "
    "before beforehand behind being believe below beside besides best better between beyond "
    "both brief but by c c'mon c's came can can't cannot cant cause causes certain "
    "certainly changes clearly co com come comes concerning consequently consider "
    "considering contain containing contains corresponding could couldn't course currently "
    "d definitely described despite did didn't different do does doesn't doing don't done "
    "down downwards during e each edu eg eight either else elsewhere enough entirely "
    "especially et etc even ever every everybody everyone everything everywhere ex exactly "
    "example except f far few fifth first five followed following follows for former "
    "formerly forth four from further furthermore g get gets getting given gives go goes "
    "going gone got gotten greetings h had hadn't happens hardly has hasn't have haven't "
    "having he he's hello help hence her here here's hereafter hereby herein hereupon hers "
    "herself hi him himself his hither hopefully how howbeit however i i'd i'll i'm i've ie "
    "if ignored immediate in inasmuch inc indeed indicate indicated indicates inner insofar "
    "instead into inward is isn't it it'd it'll it's its itself j just k keep keeps kept "
    "know known knows l last lately later latter latterly least less lest let let's like "
    "liked likely little look looking looks ltd m mainly many may maybe me mean meanwhile "
    "merely might more moreover most mostly much must my myself n name namely nd near "
    "nearly necessary need needs neither never nevertheless new next nine no nobody non "
    "none noone nor normally not nothing novel now nowhere o obviously of off often oh ok "
    "okay old on once one ones only onto or other others otherwise ought our ours ourselves "
    "out outside over overall own p particular particularly per perhaps placed please plus "
    "possible presumably probably provides q que quite qv r rather rd re really reasonably "
    "regarding regardless regards relatively respectively right s said same saw say saying "
    "says second secondly see seeing seem seemed seeming seems seen self selves sensible "
    "sent serious seriously seven several shall she should shouldn't since six so some "
    "somebody somehow someone something sometime sometimes somewhat somewhere soon sorry "
    "specified specify specifying still sub such sup sure t t's take taken tell tends th "
    "than thank thanks thanx that that's thats the their theirs them themselves then thence "
    "there there's thereafter thereby therefore therein theres thereupon these they they'd "
    "they'll they're they've think third this thorough thoroughly those though three "
    "through throughout thru thus to together too took toward towards tried tries truly try "
    "trying twice two u un under unfortunately unless unlikely until unto up upon us use "
    "used useful uses using usually uucp v value various very via viz vs w want wants was "
    "wasn't way we we'd we'll we're we've welcome well went were weren't what what's "
    "whatever when whence whenever where where's whereafter whereas whereby wherein "
    "whereupon wherever whether which while whither who who's whoever whole whom whose why "
    "will willing wish with within without won't wonder would wouldn't x y yes yet you "
    "you'd you'll you're you've your yours yourself yourselves z zero ";

using Word = std::u16string;
using Part = std::u16string_view;

/// An ending and what takes its place.
struct Ending {
  Part from, to;
};

bool is_vowel(char16_t c) { return Part(u"aeiouy").find(c) != Part::npos; }

Word word_of(BytesView text) {
  Word out;
  while (!text.empty()) {
    const char32_t c = take_code_point(text);
    if (c < 0x10000) {
      out += static_cast<char16_t>(c);
      continue;
    }
    out += static_cast<char16_t>(0xD800 + ((c - 0x10000) >> 10));
    out += static_cast<char16_t>(0xDC00 + ((c - 0x10000) & 0x3FF));
  }
  return out;
}

Bytes text_of(const Word& word) {
  Bytes out;
  for (size_t i = 0; i < word.size(); ++i) {
    char32_t c = word[i];
    if (c >= 0xD800 && c < 0xDC00 && i + 1 < word.size())
      c = 0x10000 + ((c - 0xD800) << 10) + (word[++i] - 0xDC00U);
    append_code_point(out, c);
  }
  return out;
}

class Stemmer {
 public:
  explicit Stemmer(Word word) : word_(std::move(word)) {}

  Word run() {
    mark_consonant_y();
    mark_regions();
    step_1a();
    if (!is_kept()) {
      step_1b();
      step_1c();
      step_2();
      step_3();
      step_4();
      step_5();
    }
    std::ranges::replace(word_, u'Y', has_marks_ ? u'y' : u'Y');
    return std::move(word_);
  }

 private:
  bool ends_with(Part ending) const { return word_.ends_with(ending); }
  bool in_r1(size_t bytes) const { return word_.size() >= r1_ + bytes; }
  bool in_r2(size_t bytes) const { return word_.size() >= r2_ + bytes; }
  void cut(size_t count) { word_.erase(word_.size() - count); }
  /// The character that many places before the end; 0 before the beginning.
  char16_t before(size_t count) const {
    return count < word_.size() ? word_[word_.size() - 1 - count] : u'\0';
  }
  bool has_vowel_before(size_t count) const {
    return word_.size() > count &&
           std::ranges::any_of(Part(word_).substr(0, word_.size() - count), is_vowel);
  }
  /// Null: the word has none of them.
  const Ending* longest(std::span<const Ending> endings) const {
    const Ending* best = nullptr;
    for (const Ending& ending : endings) {
      if (ends_with(ending.from) && (best == nullptr || ending.from.size() > best->from.size()))
        best = &ending;
    }
    return best;
  }
  void replace(const Ending& ending) {
    cut(ending.from.size());
    word_ += ending.to;
  }

  // A y at the beginning or behind a vowel is a consonant: it is written Y until the end.
  void mark_consonant_y() {
    if (word_.starts_with(u'\'')) word_.erase(0, 1);
    for (size_t i = 0; i < word_.size(); ++i) {
      if (word_[i] != u'y' || (i > 0 && !is_vowel(word_[i - 1]))) continue;
      word_[i] = u'Y';
      has_marks_ = true;
    }
  }

  /// Behind the first consonant that follows a vowel.
  size_t region_from(size_t from) const {
    while (from < word_.size() && !is_vowel(word_[from])) ++from;
    while (from < word_.size() && is_vowel(word_[from])) ++from;
    return std::min(from + 1, word_.size());
  }

  void mark_regions() {
    r1_ = region_from(0);
    for (const Part beginning : {Part(u"gener"), Part(u"commun"), Part(u"arsen")}) {
      if (word_.starts_with(beginning)) r1_ = beginning.size();
    }
    r2_ = region_from(r1_);
  }

  /// Whether what is before the last `count` characters ends with a short syllable.
  bool is_short_before(size_t count) const {
    const char16_t last = before(count), middle = before(count + 1), first = before(count + 2);
    const size_t size = word_.size() - std::min(count, word_.size());
    if (size < 2 || is_vowel(last) || !is_vowel(middle)) return false;
    if (size == 2) return true;
    return !is_vowel(first) && Part(u"wxY").find(last) == Part::npos;
  }

  void step_1a() {
    constexpr Ending kPossessive[] = {{u"\'", u""}, {u"\'s", u""}, {u"\'s\'", u""}};
    if (const Ending* const found = longest(kPossessive)) replace(*found);
    constexpr Ending kPlurals[] = {{u"sses", u"ss"}, {u"ied", u""}, {u"ies", u""},
                                   {u"s", u""},      {u"us", u""},  {u"ss", u""}};
    const Ending* const found = longest(kPlurals);
    if (found == nullptr || found->from == u"us" || found->from == u"ss") return;
    if (found->from == u"sses") {
      replace(*found);
    } else if (found->from == u"s") {
      if (has_vowel_before(2)) cut(1);
    } else {
      cut(word_.size() >= 5 ? 2 : 1);
    }
  }

  bool is_kept() const {
    constexpr Part kKept[] = {u"inning",  u"outing",  u"canning", u"herring",
                              u"earring", u"proceed", u"exceed",  u"succeed"};
    return std::ranges::count(kKept, Part(word_)) != 0;
  }

  void step_1b() {
    constexpr Ending kEndings[] = {{u"eed", u"ee"}, {u"eedly", u"ee"}, {u"ed", u""},
                                   {u"edly", u""},  {u"ing", u""},     {u"ingly", u""}};
    const Ending* const found = longest(kEndings);
    if (found == nullptr) return;
    const size_t size = found->from.size();
    if (!found->to.empty()) {
      if (in_r1(size)) replace(*found);
      return;
    }
    if (!has_vowel_before(size)) return;
    cut(size);
    constexpr Part kDoubles = u"bdfgmnprt";
    if (ends_with(u"at") || ends_with(u"bl") || ends_with(u"iz")) {
      word_ += u'e';
    } else if (word_.size() >= 2 && before(0) == before(1) &&
               kDoubles.find(before(0)) != Part::npos) {
      cut(1);
    } else if (word_.size() == r1_ && is_short_before(0)) {
      word_ += u'e';
    }
  }

  void step_1c() {
    if (word_.size() > 2 && (before(0) == u'y' || before(0) == u'Y') && !is_vowel(before(1)))
      word_.back() = u'i';
  }

  void step_2() {
    constexpr Ending kEndings[] = {
        {u"tional", u"tion"}, {u"enci", u"ence"},   {u"anci", u"ance"},   {u"abli", u"able"},
        {u"entli", u"ent"},   {u"izer", u"ize"},    {u"ization", u"ize"}, {u"ational", u"ate"},
        {u"ation", u"ate"},   {u"ator", u"ate"},    {u"alism", u"al"},    {u"aliti", u"al"},
        {u"alli", u"al"},     {u"fulness", u"ful"}, {u"ousli", u"ous"},   {u"ousness", u"ous"},
        {u"iveness", u"ive"}, {u"iviti", u"ive"},   {u"biliti", u"ble"},  {u"bli", u"ble"},
        {u"ogi", u"og"},      {u"fulli", u"ful"},   {u"lessli", u"less"}, {u"li", u""}};
    const Ending* const found = longest(kEndings);
    if (found == nullptr || !in_r1(found->from.size())) return;
    if (found->from == u"ogi" && before(3) != u'l') return;
    if (found->from == u"li" && Part(u"cdeghkmnrt").find(before(2)) == Part::npos) return;
    replace(*found);
  }

  void step_3() {
    constexpr Ending kEndings[] = {{u"tional", u"tion"}, {u"ational", u"ate"}, {u"alize", u"al"},
                                   {u"icate", u"ic"},    {u"iciti", u"ic"},    {u"ical", u"ic"},
                                   {u"ful", u""},        {u"ness", u""},       {u"ative", u""}};
    const Ending* const found = longest(kEndings);
    if (found == nullptr || !in_r1(found->from.size())) return;
    if (found->from == u"ative" && !in_r2(5)) return;
    replace(*found);
  }

  void step_4() {
    constexpr Ending kEndings[] = {{u"al", u""},  {u"ance", u""}, {u"ence", u""},  {u"er", u""},
                                   {u"ic", u""},  {u"able", u""}, {u"ible", u""},  {u"ant", u""},
                                   {u"ent", u""}, {u"ment", u""}, {u"ement", u""}, {u"ism", u""},
                                   {u"ate", u""}, {u"iti", u""},  {u"ous", u""},   {u"ive", u""},
                                   {u"ize", u""}, {u"ion", u""}};
    const Ending* const found = longest(kEndings);
    if (found == nullptr || !in_r2(found->from.size())) return;
    if (found->from == u"ion" && before(3) != u's' && before(3) != u't') return;
    replace(*found);
  }

  void step_5() {
    if (ends_with(u"e")) {
      if (in_r2(1) || (in_r1(1) && !is_short_before(1))) cut(1);
    } else if (ends_with(u"ll") && in_r2(1)) {
      cut(1);
    }
  }

  Word word_;
  size_t r1_ = 0, r2_ = 0;  // where they begin
  bool has_marks_ = false;
};

/// Words that the rules would get wrong, with their stems.
constexpr std::array<Ending, 18> kExceptions = {{{u"skis", u"ski"},
                                                 {u"skies", u"sky"},
                                                 {u"dying", u"die"},
                                                 {u"lying", u"lie"},
                                                 {u"tying", u"tie"},
                                                 {u"idly", u"idl"},
                                                 {u"gently", u"gentl"},
                                                 {u"ugly", u"ugli"},
                                                 {u"early", u"earli"},
                                                 {u"only", u"onli"},
                                                 {u"singly", u"singl"},
                                                 {u"sky", u"sky"},
                                                 {u"news", u"news"},
                                                 {u"howe", u"howe"},
                                                 {u"atlas", u"atlas"},
                                                 {u"cosmos", u"cosmos"},
                                                 {u"bias", u"bias"},
                                                 {u"andes", u"andes"}}};

}  // namespace

bool is_english_stop_word(BytesView word) {
  static const auto kWords = [] {
    std::unordered_set<std::string_view> words;
    for (std::string_view rest = kStopWords; !rest.empty();) {
      const size_t size = rest.find(' ');
      words.insert(rest.substr(0, size));
      rest.remove_prefix(size + 1);
    }
    return words;
  }();
  return kWords.contains(word);
}

Bytes english_stem(BytesView word) {
  Word characters = word_of(word);
  constexpr size_t kShortest = 3;
  if (characters.size() < kShortest) return Bytes(word);
  const auto exception = std::ranges::find(kExceptions, Part(characters), &Ending::from);
  if (exception != kExceptions.end()) return text_of(Word(exception->to));
  return text_of(Stemmer(std::move(characters)).run());
}

}  // namespace tetrad::cql

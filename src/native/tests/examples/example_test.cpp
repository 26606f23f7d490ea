#include "core/examples/example.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <limits>
#include <string>

#include "core/base/errors.h"
#include "core/examples/utf8.h"

namespace {

using namespace std::string_literals;
using stoker::Error;
using stoker::ErrorCode;
using stoker::FeatureKind;
using stoker::FeatureView;
using stoker::NamedValues;
using stoker::Wanted;

std::span<const uint8_t> bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::string text(std::span<const uint8_t> value) {
  return {value.begin(), value.end()};
}

// One length-delimited field; lengths here stay below 128, so that they are one byte.
std::string field(int number, const std::string& body) {
  REQUIRE(body.size() < 128);
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(body.size())} + body;
}

std::string entry(const std::string& key, const std::string& feature) {
  return field(1, field(1, key) + field(2, feature));
}

std::string example(const std::string& entries) {
  return field(1, entries);
}

template <typename Value>
std::vector<Value> all(const FeatureView& view) {
  std::vector<Value> out;
  view.append_to(out);
  return out;
}

// A payload and the only feature in it, which borrows from it.
struct Single {
  explicit Single(std::string of) : payload(std::move(of)) {
    const auto views = stoker::parse_example(bytes(payload));
    REQUIRE(views.size() == 1);
    view = views.front();
  }
  Single(const Single&) = delete;
  const FeatureView* operator->() const { return &view; }

  std::string payload;
  FeatureView view;
};

Error error_of(const std::string& payload) {
  try {
    stoker::parse_example(bytes(payload));
  } catch (const Error& e) {
    return e;
  }
  FAIL("nothing was thrown");
  std::abort();
}

void check_error(const std::string& payload, int64_t offset) {
  const Error e = error_of(payload);
  CHECK(e.code() == ErrorCode::kBadExample);
  CHECK(e.where().offset == offset);
}

const std::string kVarintMinusOne = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s;

}  // namespace

TEST_CASE("example: what is written is read back") {
  const std::string jpeg = "\xff\xd8 not really"s;
  const std::string empty;
  const std::vector<int64_t> ints = {
      0, 1, -1, 127, 128, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  const std::vector<float> floats = {0.0F, -0.0F, 1.5F, std::numeric_limits<float>::infinity()};
  const std::string payload = stoker::write_example({{"z", ints},
                                                     {"a", stoker::BytesValues{bytes(jpeg), bytes(empty)}},
                                                     {"m", floats},
                                                     {"", stoker::Int64Values{}}});
  const auto views = stoker::parse_example(bytes(payload));
  REQUIRE(views.size() == 4);
  CHECK(views[0].key() == "");
  CHECK(views[0].kind() == FeatureKind::kInt64);
  CHECK(views[0].count() == 0);
  CHECK(views[1].count() == 2);
  CHECK(text(all<std::span<const uint8_t>>(views[1])[0]) == jpeg);
  CHECK(text(views[1].first_bytes()) == jpeg);
  CHECK(all<float>(views[2]) == floats);
  CHECK(all<int64_t>(views[3]) == ints);
  CHECK(views[3].first_int64() == 0);
}

TEST_CASE("example: canonical bytes, by hand") {
  CHECK(stoker::write_example({}) == "\x0a\x00"s);
  // Keys in the order of their bytes (not of any alphabet), numbers packed, nothing in an empty list.
  const std::string payload = stoker::write_example({{"\xc3\xa9", stoker::FloatValues{}},
                                                     {"b", stoker::Int64Values{1, -1}},
                                                     {"B", stoker::FloatValues{1.0F}}});
  CHECK(payload ==
        example(entry("B", field(2, field(1, "\x00\x00\x80\x3f"s))) +
                entry("b", field(3, field(1, "\x01"s + kVarintMinusOne))) + entry("\xc3\xa9", field(2, ""))));
}

TEST_CASE("example: the writer refuses what no reader could use") {
  CHECK_THROWS_AS(stoker::write_example({{"a", stoker::FloatValues{}}, {"a", stoker::Int64Values{}}}), Error);
  CHECK_THROWS_AS(stoker::write_example({{"\xff", stoker::FloatValues{}}}), Error);
}

TEST_CASE("example: lengths of one, two, three and four bytes") {
  for (size_t size : {0, 1, 127, 128, 16383, 16384, 2097151, 2097152}) {
    const std::string value(size, 'x');
    const std::string payload = stoker::write_example({{"k", stoker::BytesValues{bytes(value)}}});
    CHECK(text(Single(payload)->first_bytes()) == value);
  }
}

TEST_CASE("example: unpacked, packed and mixed numbers") {
  CHECK(all<int64_t>(
            Single(example(entry("k", field(3, "\x08\x05"s + field(1, "\x06\x07") + "\x08\x08")))).view) ==
        std::vector<int64_t>{5, 6, 7, 8});
  const std::string float_bytes = "\x00\x00\x80\x3f"s;
  CHECK(all<float>(
            Single(example(entry("k", field(2, "\x0d"s + float_bytes + field(1, float_bytes + float_bytes)))))
                .view) == std::vector<float>{1, 1, 1});
}

TEST_CASE("example: fields in any order, unknown fields, messages in pieces") {
  const std::string unknown =
      "\x78\x05"s + "\x79" + std::string(8, 'x') + "\x7d" + "1234" + "\x7a\x02yy" +
      "\x7b\x0b\x08\x01\x0c\x7c";  // field 15: varint, 64, 32, bytes, group with a group
  const std::string list = field(1, "one") + unknown + field(1, "two");
  const std::string value = unknown + field(1, list);
  const std::string pieces =
      unknown + field(2, value) + field(1, "k") + field(2, field(1, field(1, "three")));
  const std::string payload = unknown + field(1, field(1, pieces)) + field(1, unknown);
  const Single view(payload);
  CHECK(view->key() == "k");
  CHECK(view->count() == 3);
  CHECK(text(all<std::span<const uint8_t>>(view.view)[2]) == "three");
}

TEST_CASE("example: a list of another kind replaces the lists before it") {
  const Single view(
      example(entry("k", field(1, field(1, "gone")) + field(3, field(1, "\x01")) + field(3, "\x08\x02"))));
  CHECK(view->kind() == FeatureKind::kInt64);
  CHECK(all<int64_t>(view.view) == std::vector<int64_t>{1, 2});
  const Single back(example(
      entry("k", field(1, field(1, "gone")) + field(3, field(1, "\x01")) + field(1, field(1, "kept")))));
  CHECK(back->count() == 1);
  CHECK(text(back->first_bytes()) == "kept");
}

TEST_CASE("example: the last of equal keys wins, also when it holds nothing") {
  const std::string first = entry("k", field(1, field(1, "first")));
  CHECK(text(Single(example(first + entry("k", field(1, field(1, "last")))))->first_bytes()) == "last");
  CHECK(stoker::parse_example(bytes(example(first + entry("k", "")))).empty());
  std::vector<Wanted> wanted(1);
  wanted[0].key = "k";
  stoker::find_features(bytes(example(first + entry("k", ""))), wanted);
  CHECK(wanted[0].view.kind() == FeatureKind::kNone);
}

TEST_CASE("example: several features are found in one pass") {
  const std::string payload = example(entry("x", field(1, field(1, "image"))) +
                                      entry("y", field(3, field(1, "\x07"))) + entry("z", ""));
  std::vector<Wanted> wanted = {{"y", {}}, {"nowhere", {}}, {"x", {}}};
  stoker::find_features(bytes(payload), wanted);
  CHECK(wanted[0].view.first_int64() == 7);
  CHECK(wanted[1].view.kind() == FeatureKind::kNone);
  CHECK(text(wanted[2].view.first_bytes()) == "image");
  stoker::find_features(bytes(example("")), wanted);  // and a view is never that of an earlier record
  CHECK(wanted[2].view.kind() == FeatureKind::kNone);
}

TEST_CASE("example: asking for the wrong thing names the feature") {
  const std::string payload = example(entry("k", field(3, "")));
  std::vector<Wanted> wanted = {{"k", {}}, {"gone", {}}};
  stoker::find_features(bytes(payload), wanted);
  CHECK_THROWS_WITH_AS(wanted[0].view.first_bytes(), doctest::Contains("'k' is of kind int64"), Error);
  CHECK_THROWS_WITH_AS(wanted[0].view.first_int64(), doctest::Contains("'k' is empty"), Error);
  CHECK_THROWS_WITH_AS(wanted[1].view.first_int64(), doctest::Contains("'gone' is missing"), Error);
  CHECK(all<int64_t>(wanted[0].view).empty());
}

TEST_CASE("example: damage is named with its byte") {
  check_error("\x0a"s, 1);                                            // no length
  check_error("\x0a\x05\x0a"s, 1);                                    // longer than the buffer
  check_error("\x0a\x02\x0a\x01"s, 3);                                // an entry longer than its message
  check_error("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s, 1);    // a length of 2^64-1
  check_error("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"s, 1);    // a length of more than 64 bits
  check_error("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"s, 1);    // a number of more than 64 bits
  check_error("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"s, 0);    // eleven bytes
  check_error("\x00\x00"s, 0);                                        // field number 0
  check_error("\x88\x80\x80\x80\x10\x00"s, 0);                        // a field number above 2^29-1
  check_error("\x0e\x00"s, 0);                                        // wire type 6
  check_error("\x08\x01\x0c"s, 2);                                    // a group ends that is not open
  check_error("\x7b\x08\x01"s, 0);                                    // a group has no end
  check_error("\x7b\x08\x01\x74"s, 3);                                // a group ends under another number
  check_error("y1234567"s, 1);                                        // seven of eight bytes
  check_error(example(entry("\xff", "")), 6);                         // a key that is not UTF-8
  check_error(example(entry("k", field(2, field(1, "12345")))), 12);  // five bytes of floats
  check_error(example(entry("k", field(3, field(1, "\x80")))), 13);   // a packed number cut off
}

TEST_CASE("example: nested groups end at a fixed depth") {
  const auto nested = [](size_t depth) { return std::string(depth, '\x7b') + std::string(depth, '\x7c'); };
  CHECK(stoker::parse_example(bytes(nested(32))).empty());
  check_error(nested(33), 32);
  check_error(std::string(1000000, '\x7b'), 32);
}

TEST_CASE("example: every cut of a payload is an error, except where protobuf sees a whole message") {
  const std::string payload =
      stoker::write_example({{"k", stoker::Int64Values{1, 300}}, {"l", stoker::FloatValues{1}}});
  for (size_t cut = 1; cut < payload.size(); ++cut) {
    REQUIRE_THROWS_AS(stoker::parse_example(bytes(payload.substr(0, cut))), Error);
  }
  CHECK(stoker::parse_example({}).empty());
}

TEST_CASE("utf8: the boundaries of the standard's table") {
  for (const char* good : {"", "a", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
                           "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    CHECK(stoker::is_utf8(good));
  }
  for (const char* bad : {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2\x41", "\xe0\x9f\xbf",
                          "\xed\xa0\x80", "\xe1\x80", "\xe1\x80\x41", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
                          "\xf5\x80\x80\x80", "\xff", "\xf1\x80\x80"}) {
    CHECK_FALSE(stoker::is_utf8(bad));
  }
}
